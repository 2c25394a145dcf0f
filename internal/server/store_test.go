package server_test

import (
	"testing"
	"time"

	"capper/internal/capping"
)

func openStore(t testing.TB, clock func() time.Time) capping.Store {
	t.Helper()
	return &memStore{clock: clock, logs: map[uint32]capping.Log{}, ids: map[capping.Token]string{}}
}
