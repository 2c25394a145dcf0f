package pebblestore

import (
	"testing"

	"capper/internal/capping/storetest"
)

func TestPolicies(t *testing.T) { storetest.RunPolicies(t, openDefault) }
