package pebblestore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"capper/internal/capping"
	"capper/internal/capping/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open1(t *testing.T, clock func() time.Time) capping.Store {
	s, err := Open(Config{Path: t.TempDir(), Clock: clock})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestStore(t *testing.T) { storetest.Run(t, open1) }
