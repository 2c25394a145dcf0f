// Package architecture contains only tests. Some tests check the import rules. These rules name the packages that each
// package may import, and libraries that a single package may import. Further tests compare the documents with the code
// and with each other.
package architecture
