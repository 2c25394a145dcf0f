// Package testkit is what tests of many packages need: a clock that they move, a
// log that they read, names that nobody else has, and waiting for a condition.
// It imports none of our packages, so that tests of all of them may import it.
package testkit
