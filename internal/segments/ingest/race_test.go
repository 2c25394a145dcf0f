//go:build race

package ingest

// percentStep is how densely files are cut, in percent, where the race detector makes everything slow.
const percentStep = 60
