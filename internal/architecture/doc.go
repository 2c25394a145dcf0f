// Package architecture contains only tests. Some tests check the import rules. These rules list the packages that each
// package may import, and the libraries that only one package may import. Other tests compare the documents with the
// code, and the documents with each other.
package architecture
