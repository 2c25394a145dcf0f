// Package testkit provides helpers for the tests of many packages. The helpers are a clock that tests set, a log that
// tests read, functions that wait for conditions or for a steady machine, unique Redis key prefixes, and certificates.
// Package testkit imports no other package of this project, so the tests of all packages may import testkit.
package testkit
