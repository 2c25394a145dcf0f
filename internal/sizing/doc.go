// Package sizing works out what a load takes: memory, processors, network and disks. It is
// arithmetic; the constants were measured on real servers, and the tests of this package measure
// those of bytes again and hold the formulae to within a tenth (go test ./internal/sizing). Times
// depend on the machine: they are those of docs/benchmarks.md, and bounds, not promises.
package sizing
