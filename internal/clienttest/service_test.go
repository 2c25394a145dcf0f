package clienttest

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/internal/capping"
	"capper/internal/capping/pebblestore"
	"capper/internal/segments/segmentstest"
	"capper/internal/server"
)

// halves is two segments: ids below 1,000,000 are new, of the rest even ids
// are active and odd ids in none.
type halves struct{ segmentstest.WithoutSets }

func (halves) Generation() string { return "g1" }
func (halves) Names() []string    { return []string{"new", "active"} }
func (halves) Lookup(numbers []uint32, codes []uint8) {
	for i, user := range numbers {
		switch {
		case user < 1_000_000:
			codes[i] = 1
		case user%2 == 0:
			codes[i] = 2
		default:
			codes[i] = 0
		}
	}
}

// newCapper serves the API over an embedded store; wrap may stand between.
func newCapper(t testing.TB, wrap func(http.Handler) http.Handler, change ...func(*server.Config)) (url string) {
	t.Helper()
	store, err := pebblestore.Open(t.Context(), pebblestore.Config{Path: t.TempDir(), CacheBytes: 32 << 20})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	day := 24 * time.Hour
	policy := &capping.Policy{
		Version: "p1", Channels: map[string]capping.Channel{"push": 1},
		Default:  []capping.Limit{{Name: "daily", Max: 1, Window: day}},
		Segments: map[string][]capping.Limit{"active": {{Name: "daily", Max: 2, Window: day}}},
	}
	cfg := server.Config{Capper: capping.New(store, func() capping.Segments { return halves{} }, policy, time.Now)}
	cfg.Bounds.CallTimeout = time.Minute // a busy machine must not make users unavailable, which clients ask for again
	for _, f := range change {
		f(&cfg)
	}
	s, err := server.New(cfg)
	require.NoError(t, err)
	s.SetReady(true)
	handler := s.Public()
	if wrap != nil {
		handler = wrap(handler)
	}
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	return srv.URL
}

func newClient(t testing.TB, cfg client.Config) *client.Client {
	t.Helper()
	if cfg.MinBackoff == 0 {
		cfg.MinBackoff = time.Millisecond
	}
	c, err := client.New(cfg)
	require.NoError(t, err)
	return c
}
