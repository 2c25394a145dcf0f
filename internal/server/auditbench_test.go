package server_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	auditjournal "capper/internal/audit/journal"
	"capper/internal/capping"
	"capper/internal/server"
)

// BenchmarkAudit measures BenchmarkAboveStore with and without the audit, including the background work. Compare
// alternating runs: -count 6.
func BenchmarkAudit(b *testing.B) {
	for _, batch := range batches {
		for name, outcome := range map[string]capping.Outcome{"allowed": capping.Allowed, "denied": capping.Denied} {
			for _, on := range []bool{false, true} {
				kind := map[bool]string{false: "/off", true: "/on"}[on]
				b.Run(batch.name+"/"+name+kind, func(b *testing.B) {
					var records *auditjournal.Journal
					audited := withAudit(b, on)
					s := newBenchService(b, nothing{openStore(b, time.Now), outcome},
						func(cfg *server.Config) { audited(cfg); records = cfg.Journal })
					l := load{Addr: s.serveFor(b, s.server.Public()), Path: "/v1/filter", Users: batch.users,
						Bitmap: batch.bits, Requests: b.N, Conns: 1}
					result, used := send(b, l)
					users := float64(b.N * batch.users)
					b.ReportMetric(float64(used.Nanoseconds())/users, "cpu-ns/user")
					b.ReportMetric(users/result.Seconds, "users/s")
					if on {
						require.NoError(b, records.Flush(b.Context()))
						b.ReportMetric(float64(records.Status().Records)/float64(b.N), "records/call")
					}
				})
			}
		}
	}
}

// withAudit makes a service record its decisions, if on.
func withAudit(t testing.TB, on bool) func(*server.Config) {
	return func(cfg *server.Config) {
		if !on {
			return
		}
		var err error
		cfg.Journal, err = auditjournal.Open(t.Context(), auditjournal.Config{To: t.TempDir(), MaxWaiting: 1 << 30})
		require.NoError(t, err)
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			require.NoError(t, cfg.Journal.Close(ctx))
		})
	}
}
