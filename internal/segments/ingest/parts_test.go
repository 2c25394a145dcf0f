package ingest

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"capper/internal/objects"
	"capper/internal/objects/s3test"
)

// TestManyPartsAreReadAtOnce checks that the maximum number of objects is requested in parallel, even
// with few workers.
func TestManyPartsAreReadAtOnce(t *testing.T) {
	t.Parallel()
	const parts = 4 * s3AtOnce
	bucket := s3test.Bucket(t)
	var pending sync.WaitGroup
	next := make(chan int)
	for range 8 {
		pending.Go(func() {
			for i := range next {
				key := fmt.Sprintf("parts/%d/part-%04d.txt", i%7, i)
				body := bytes.NewReader(fmt.Appendf(nil, "%d\n%d\n", i, i+parts))
				if _, err := s3test.Client().PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key,
					Body: body}); err != nil {
					t.Errorf("put %s: %v", key, err)
				}
			}
		})
	}
	for i := range parts {
		next <- i
	}
	close(next)
	pending.Wait()

	var asked atomic.Int64
	all := make(chan struct{}) // closed when as many have been asked for, and none of them was answered
	answer := sync.OnceFunc(func() { close(all) })
	endpoint := s3test.Proxy(t, func(server http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, ".txt") {
				if asked.Add(1) == s3AtOnce {
					answer()
				}
				select {
				case <-all:
				case <-time.After(time.Minute):
					t.Errorf("%d parts are asked for at once", asked.Load())
					answer()
				case <-r.Context().Done():
				}
			}
			server.ServeHTTP(w, r)
		})
	})
	r := NewReader(Config{Workers: 2, S3: objects.S3Config{Endpoint: endpoint}})
	set, err := r.ReadIDs(t.Context(), []Input{{Path: "s3://" + bucket + "/parts/**/*.txt"}})
	require.NoError(t, err)
	require.Len(t, idsOf(set), 2*parts)
	require.Len(t, r.Reports(), parts)
}
