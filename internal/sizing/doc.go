// Package sizing computes the resources for a planned load: memory, processors, network and disks. Package sizing
// only computes, and has no side effects. The constants in the formulae of package sizing were measured on real
// servers. The tests of package sizing measure the constants for bytes again. The tests of package sizing compare the
// results of the formulae with measurements, and allow a deviation of 10 % (go test ./internal/sizing). Those
// constants of package sizing that are durations depend on the machine. The durations in package sizing are from
// docs/benchmarks.md, and are estimates without a guarantee.
package sizing
