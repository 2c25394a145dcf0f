// Package sizing computes the resources for a planned load: memory, processors, network and disks. Package sizing has
// no side effects. The constants in the formulae are measurements on real servers. The tests measure the constants for
// bytes again, compare the results of the formulae with measurements, and allow a deviation of 10 % (go test
// ./internal/sizing). Constants that are durations depend on the machine. Such constants come from docs/benchmarks.md,
// and are only estimates.
package sizing
