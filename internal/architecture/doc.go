// Package architecture contains tests of the import rules: which package may import which, and which library only one
// package may import. It has no code besides the tests.
package architecture
