//go:build !race

package ingest

// percentStep is the distance between two truncated lengths in per cent.
const percentStep = 5
