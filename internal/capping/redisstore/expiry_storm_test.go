//go:build storms

package redisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/script"
)

// Sweeps of a bucket that is too long for one sweep start at different places, so that repeated sweeps remove all
// idle users.
func TestIdleUsersOfLongBucketsArePruned(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := openShared(t, func(config *Config) { config.Clock = c.now })
	users := everyNth(int(script.Standard.BucketSize), 1)
	busy, idle := users[:100], users[100:]
	var long capping.Log
	for i := range 300 {
		long = long.Record(
			nil,
			capping.Entry{At: c.instant(), Channel: 1, Token: capping.Message{ID: fmt.Sprint(i)}.Token()},
			0,
		)
	}
	b := batchOf("first", idle)
	b.Retention = 24 * time.Hour
	filter(t, s, b)
	for day := 0; day < 20 || len(readLogs(t, s)) > len(busy); day++ {
		require.Less(t, day, 200)
		c.advance(24 * time.Hour)
		for i := range long.Len() {
			copy(long[i*capping.EntrySize:], capping.Log(nil).Record(nil, capping.Entry{At: c.instant()}, 0)[:5])
		}
		for _, user := range busy {
			put(t, s, user, long)
		}
		b := batchOf(fmt.Sprint("day ", day), busy[:10])
		b.Retention = 24 * time.Hour
		filter(t, s, b)
	}
	require.Equal(t, len(busy), len(readLogs(t, s)))
}
