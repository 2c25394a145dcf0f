// Package sizing computes the resources for a planned load: memory, processors, network and disks. The package only
// computes, and has no side effects. The constants in its formulae were measured on real servers. The tests of package
// sizing measure the constants for bytes again. The tests require that the results of the formulae are accurate to 10 %
// (go test ./internal/sizing). The constants for durations depend on the machine. The constants for durations are from
// docs/benchmarks.md, and are estimates without a guarantee.
package sizing
