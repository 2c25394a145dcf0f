// Package zones is the rules of time zones by which decisions are made: those of the
// IANA database that is built into the program. The machine's own files, $ZONEINFO and
// $TZ change nothing: two instances of one build agree, whatever their machines have.
//
// Version names the release of the database. Instances of one store compare it, as other
// builds may have other rules. zoneinfo.zip is the file of the Go toolchain, whose data are
// in the public domain; `go generate ./internal/zones` takes over that of the toolchain in use.
package zones
