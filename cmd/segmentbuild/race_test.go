//go:build storms && race

package main

// Fewer rounds under the race detector, which makes everything slow.
const (
	racesEach      = 12
	amendsCompared = 16
)
