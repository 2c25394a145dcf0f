// Package charts tests deploy/helm/capper. The package renders the chart with every file of values in the chart's
// folder ci, and checks the result against the schemas of Kubernetes and of the Prometheus operator. Further tests
// check rules that the schemas cannot express: a stop has the time that it needs, probes and selectors match existing
// names, no secret is readable in a wrong place, and the programs accept their arguments and configuration.
//
//	values ─► helm ─► objects ─► kubeconform, against Kubernetes' own description
//	                     └─────► assertions, and capper and segmentbuild themselves
//
// The tests render the chart with Helm's engine, built from scripts/helm, because the whole program takes minutes to
// compile; `make chart` runs the real Helm with the same values. The tests use the network only for the Go module
// proxy, which also has the schemas, in the module k8s.io/kubernetes.
package charts
