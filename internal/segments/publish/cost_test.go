package publish

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/objects/s3test"
)

// TestRequestsOfAPublishOfSixtySets checks that verifying live objects costs one HEAD each, and that
// only changed objects are uploaded.
func TestRequestsOfAPublishOfSixtySets(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	requests := map[string]int{}
	endpoint := inFrontOfS3(t, func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		mu.Lock()
		defer mu.Unlock()
		requests[r.Method]++
		return false
	})
	at, err := objects.Open(t.Context(), "s3://"+s3test.Bucket(t)+"/prod", objects.S3Config{Endpoint: endpoint})
	require.NoError(t, err)
	const sets = 60
	build := func(last uint32) *Candidate {
		c := &Candidate{Names: []string{"vip"}, Bitmaps: []*bitmap.Bitmap{bitmap.Of(1)}}
		for i := range uint32(sets) {
			c.Sets = append(c.Sets, Set{Name: fmt.Sprintf("set-%d", i), Bitmap: bitmap.Of(i+2, i+1000)})
		}
		c.Sets[sets-1].Bitmap = bitmap.Of(last)
		return c
	}
	publishOver(t, at, build(5000))
	base, err := ReadLiveState(t.Context(), at)
	require.NoError(t, err)
	clear(requests)
	_, err = (&Publisher{Location: at, ToolVersion: "test"}).Publish(t.Context(), build(5001), base, "")
	require.NoError(t, err)
	t.Log(requests)
	require.LessOrEqual(t, requests[http.MethodHead], 2*(sets+1)+4, "each once before the swap and once after it")
	require.LessOrEqual(t, requests[http.MethodPut], 7, "the set, the manifest, current.json, checked.json and "+
		"the probe")
	require.LessOrEqual(t, requests[http.MethodGet], 6)
}
