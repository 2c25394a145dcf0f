//go:build storms

package main

import (
	"testing"

	"capper/internal/objects"
	"capper/internal/objects/objectstest"
)

func TestABuildAndAnAmendLoseNothingInFiftyRaces(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, name string, _ objects.Location) {
		raceAmends(t, name, "dense", 17)
	})
}

func TestManyAmendsAnswerLikeABuild(t *testing.T) {
	t.Parallel()
	compareAmends(t, 20)
}

// Ids of another kind make the same steps, each of which takes longer.
func TestABuildAndAnAmendOfUUIDsLoseNothing(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, name string, _ objects.Location) {
		raceAmends(t, name, "uuid", 4)
	})
}
