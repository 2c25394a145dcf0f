//go:build !race

package ingest

// percentStep is how densely files are cut: every so many percent.
const percentStep = 5
