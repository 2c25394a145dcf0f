// Package architecture holds the shape of the tree, as tests: which package may
// import which, and which library is known to which package alone. It has no
// code of its own.
package architecture
