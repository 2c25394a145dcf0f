package pebblestore

import (
	"testing"

	"capper/internal/capping/cappertest"
)

func TestPolicies(t *testing.T) { cappertest.Run(t, openDefault) }
