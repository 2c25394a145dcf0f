// Package architecture holds the shape of the tree, as tests: which package may
// import which, which library is known to which package alone, and how large
// packages, files and functions may grow. It has no code of its own.
package architecture
