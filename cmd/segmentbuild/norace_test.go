//go:build storms && !race

package main

const (
	racesEach      = 34 // races on each of the three locations, about a hundred in all
	amendsCompared = 40
)
