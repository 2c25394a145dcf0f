//go:build storms

package main

import (
	"testing"

	"capper/internal/objects"
	"capper/internal/objects/objectstest"
)

// racesEach is the number of races on each of the three locations, about a hundred in all.
const racesEach = 34

func TestABuildAndAnAmendLoseNothingInAHundredRaces(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, name string, _ objects.Location) {
		raceAmends(t, name, "dense", racesEach)
	})
}

func TestManyAmendsAnswerLikeABuild(t *testing.T) {
	t.Parallel()
	compareAmends(t, 40)
}

// Ids of another kind make the same steps, each of which takes longer.
func TestABuildAndAnAmendOfUUIDsLoseNothing(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, name string, _ objects.Location) {
		raceAmends(t, name, "uuid", racesEach/4)
	})
}
