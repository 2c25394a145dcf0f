// Package testkit provides helpers for the tests of many packages: a clock that tests set, a log that tests read,
// waiting for conditions, unique namespaces, and certificates. Package testkit imports no other package of this
// project, so the tests of all packages may import testkit.
package testkit
