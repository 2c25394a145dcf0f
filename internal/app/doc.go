// Package app is the service that `capper serve` runs: it opens what the
// configuration names, connects the parts, and starts and stops them in order.
package app
