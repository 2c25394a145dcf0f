package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/bitmap"
	"capper/internal/config"
	"capper/internal/objects"
	"capper/internal/segments/publish"
	"capper/internal/testcluster"
)

// BenchmarkChangeSet changes a set through HTTP, on the embedded store and on a Redis Cluster with replicas: one user
// a call, and 100,000 users a call.
func BenchmarkChangeSet(b *testing.B) {
	for kind, store := range map[string]string{
		config.Embedded: onEmbedded(b.TempDir()),
		config.Redis:    onRedis(testcluster.Start(b, testcluster.Options{Replicas: 1}).Addrs...),
	} {
		url := serveSets(b, store)
		for _, users := range []int{1, 100_000} {
			b.Run(fmt.Sprintf("%s/users=%d", kind, users), func(b *testing.B) {
				var took []time.Duration
				next := uint32(0)
				for b.Loop() {
					change := api.SetChange{}
					for range users {
						change.Add = append(change.Add, next)
						next += 2693 // neighbours of a call lie in different buckets
					}
					body, err := json.Marshal(change)
					require.NoError(b, err)
					began := time.Now()
					response, err := http.Post(url, "application/json", bytes.NewReader(body))
					took = append(took, time.Since(began))
					require.NoError(b, err)
					require.Equal(b, http.StatusOK, response.StatusCode)
					require.NoError(b, response.Body.Close())
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			})
		}
	}
}

// serveSets starts a service with the set opted-out and returns the URL of the set's members.
func serveSets(b *testing.B, store string) string {
	dir := b.TempDir()
	at := objects.NewDirectory(dir)
	base, err := publish.ReadLiveState(b.Context(), at)
	require.NoError(b, err)
	_, err = (&publish.Publisher{Location: at}).Publish(b.Context(), &publish.Candidate{Names: []string{"everybody"},
		Bitmaps: []*bitmap.Bitmap{bitmap.Range(0, 20_000)},
		Sets:    []publish.Set{{Name: "opted-out", Bitmap: bitmap.Of(1)}}}, base, "")
	require.NoError(b, err)
	file := filepath.Join(dir, "capper.yaml")
	replace(b, file, fmt.Sprintf(`server: {listen: "127.0.0.1:0", stop_delay: 0s}
segments: {source: %q, cache_dir: %s/cache}
store: %s
channels: {push: 1}
limits: {default: {}}
suppress: {opted-out: all}
sets: {opted-out: {max_live: 100000000}}
`, dir, dir, store))
	watcher, err := config.NewWatcher(file, time.Now)
	require.NoError(b, err)
	s, err := Start(b.Context(), Config{Watcher: watcher})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Stop()) })
	return "http://" + s.Addr().String() + "/v1/sets/opted-out/members"
}
