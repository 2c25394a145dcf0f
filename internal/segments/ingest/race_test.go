//go:build race

package ingest

// percentStep is the distance between two truncated lengths in per cent, larger because the race
// detector is slow.
const percentStep = 60
