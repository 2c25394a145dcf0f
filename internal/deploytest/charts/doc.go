// Package charts tests deploy/helm/capper: it renders the chart under every file of values in its
// folder ci, holds what comes out to the schemas of Kubernetes and of the Prometheus operator, and
// looks at what the schemas do not say: that a stop has the time it takes, that probes and
// selectors find what they name, that no secret lies where it may be read, and that the programs
// accept what they are given.
//
//	values ─► helm ─► objects ─► kubeconform, against Kubernetes' own description
//	                     └─────► assertions, and capper and segmentbuild themselves
//
// Helm is rendered by its engine, built from scripts/helm, as the whole program takes minutes to
// compile; make chart runs the real one over the same values. Nothing is asked of the network but
// the Go module proxy, which also has the schemas: they are in the module k8s.io/kubernetes.
package charts
