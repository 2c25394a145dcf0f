// Package sizing computes the resources that a load needs: memory, processors, network and disks. It is pure
// arithmetic. The constants were measured on real servers. The tests of this package measure the constants of bytes
// again and require that the formulae are accurate to a tenth (go test ./internal/sizing). Times depend on the
// machine; they come from docs/benchmarks.md and are estimates, not promises.
package sizing
