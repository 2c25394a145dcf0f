// Package zones provides the time zones that capper uses for decisions. The program capper contains a copy of the IANA
// time zone database. The zone files of the machine, $ZONEINFO and $TZ have no effect, so the same build uses the same
// time zones on every machine.
//
// The function Version returns the release of the time zone database in the program. Instances of the service that
// share a store compare the releases of their time zone databases, because another build of capper may contain other
// rules. The file zoneinfo.zip comes from the Go toolchain, and its data are in the public domain. The command `go
// generate ./internal/zones` copies the file zoneinfo.zip from the installed toolchain.
package zones
