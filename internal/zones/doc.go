// Package zones provides the time zones that decisions use: those of the IANA database that is built into the
// program. The machine's zone files, $ZONEINFO and $TZ have no effect, so two instances of one build agree on every
// machine.
//
// Version returns the release of the database. Instances of one store compare it, because another build may have
// other rules. The file zoneinfo.zip comes from the Go toolchain, and its data are in the public domain. `go generate
// ./internal/zones` copies the file of the installed toolchain.
package zones
