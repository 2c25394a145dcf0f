// Package charts tests the Helm chart deploy/helm/capper. Package charts renders the chart with every values file in
// the chart's folder "ci". Package charts checks the rendered Kubernetes objects against the schemas of Kubernetes
// and of the Prometheus operator. Further tests of the chart check rules that the schemas cannot express. For
// example, the tests check that pods have enough time to stop, and that probes and selectors match existing names.
// The tests also check that no secret is readable in a wrong place, and that the programs accept the arguments and
// the configuration that the chart gives them.
//
//	values ─► helm ─► objects ─► kubeconform, against Kubernetes' own description
//	                     └─────► assertions, and capper and segmentbuild themselves
//
// The tests render the chart with Helm's engine, built from scripts/helm, because compiling the whole Helm program
// takes minutes. The command `make chart` runs the real Helm program with the same values files. The tests of the
// chart use the network only for the Go module proxy, which also provides the schemas in the module
// k8s.io/kubernetes.
package charts
