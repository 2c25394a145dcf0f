// Package architecture contains tests of the import rules: which package may import which other package, and which
// libraries only one package may import. Further tests of package architecture compare the documents with the code
// and with each other. The package contains only tests.
package architecture
