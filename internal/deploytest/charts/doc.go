// Package charts tests the Helm chart deploy/helm/capper. The tests render the chart with every values file in the
// chart's folder "ci", and check the rendered Kubernetes objects against the schemas of Kubernetes and of the
// Prometheus operator. Further tests check rules that the schemas cannot express. For example, these rules require that
// pods have enough time to stop, and that probes and selectors match existing names. No secret may be readable in a
// wrong place. The programs must accept the arguments and the configuration in the chart.
//
//	values ─► helm ─► objects ─► kubeconform, against Kubernetes' own description
//	                     └─────► assertions, and capper and segmentbuild themselves
//
// The tests render the chart with Helm's engine, built from scripts/helm, because compiling the whole Helm program
// takes minutes. The command `make chart` runs the real Helm program with the same values files. The tests use the
// network only for the Go module proxy. The proxy also provides the schemas, in the module k8s.io/kubernetes.
package charts
