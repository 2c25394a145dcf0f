package pebblestore

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"capper/internal/capping/pebblestore/database"
	"capper/internal/pacing"
)

// BenchmarkTake measures a step without disk access: with calls that extend the last run of a log, and with
// calls that each start a run, so that the log is merged repeatedly.
func BenchmarkTake(b *testing.B) {
	for name, gaps := range map[string][]time.Duration{"regular": {1000}, "irregular": {1000, 3000, 2000, 7000}} {
		b.Run(name, func(b *testing.B) {
			now, n := time.Now(), 0
			db, err := database.Open(b.Context(), database.Config{Path: "/db", FS: vfs.NewMem(),
				Clock: func() time.Time { return now }, CacheBytes: 64 << 20})
			require.NoError(b, err)
			l, err := openPacerLogs(db)
			require.NoError(b, err)
			ask := &pacing.Ask{Targets: []pacing.Target{{Pacer: "fcm",
				Limits: []pacing.Limit{{Max: 600_000, Window: time.Second}}}}, Permits: 1}
			b.ReportAllocs()
			var longest time.Duration
			for b.Loop() {
				now = now.Add(gaps[n*n%13%len(gaps)])
				n++
				began := time.Now()
				if grant, err := l.take(b.Context(), ask); err != nil || grant.Granted != 1 {
					b.Fatal(grant, err)
				}
				longest = max(longest, time.Since(began))
			}
			b.ReportMetric(float64(longest.Microseconds()), "longest-µs")
			require.NoError(b, db.Close())
		})
	}
}
