package server_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"capper/internal/capping"
	"capper/internal/server"
)

// swallow discards an answer.
type swallow struct{ header http.Header }

func (s *swallow) Header() http.Header         { return s.header }
func (s *swallow) Write(p []byte) (int, error) { return len(p), nil }
func (s *swallow) WriteHeader(int)             {}

// BenchmarkCall measures a call between net/http and the store, where a difference of a hundredth is visible in
// alternating runs with another version. The least time of a call is the figure that other programs on the machine do
// not change.
func BenchmarkCall(b *testing.B) { benchmarkCalls(b) }

func benchmarkCalls(b *testing.B, change ...func(*server.Config)) {
	for _, users := range []int{1, 1000, 10_000} {
		b.Run(fmt.Sprintf("users-%d", users), func(b *testing.B) {
			s := newBenchService(b, nothing{openStore(b, time.Now), capping.Allowed}, change...)
			handler := s.server.Public()
			l := load{Users: users}
			sent := l.body(0)
			w, body := &swallow{http.Header{}}, bytes.NewReader(nil)
			r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/v1/filter", http.NoBody)
			r.Header.Set("Content-Type", "application/json")
			r.ContentLength, r.Body = int64(len(sent)), io.NopCloser(body)
			b.ReportAllocs()
			before, least := cpu(b), time.Hour
			for b.Loop() {
				clear(w.header)
				body.Reset(sent)
				began := time.Now()
				handler.ServeHTTP(w, r)
				least = min(least, time.Since(began))
			}
			b.ReportMetric(float64(least.Nanoseconds()), "least-ns/call")
			b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/call")
		})
	}
}
