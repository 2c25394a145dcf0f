// Package architecture contains tests of the import rules: which package may import which, and which library only one
// package may import. Further tests compare documents with the code and with each other. It has no code besides the
// tests.
package architecture
