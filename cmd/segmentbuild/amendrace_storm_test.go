//go:build storms

package main

import (
	"testing"

	"capper/internal/objects"
	"capper/internal/objects/objectstest"
)

func TestABuildAndAnAmendLoseNothingInAHundredRaces(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, name string, _ objects.Location) {
		raceAmends(t, name, 100)
	})
}
