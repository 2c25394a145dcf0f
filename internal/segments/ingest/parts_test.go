package ingest

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"capper/internal/objects"
	"capper/internal/objects/s3test"
)

// TestManyPartsAreReadAtOnce: 2,000 objects, each of whose answers takes 50 ms,
// take seconds, not the 50 that they take two at a time.
func TestManyPartsAreReadAtOnce(t *testing.T) {
	t.Parallel()
	const parts, delay = 2000, 50 * time.Millisecond
	bucket := s3test.Bucket(t)
	var pending sync.WaitGroup
	next := make(chan int)
	for range 8 {
		pending.Go(func() {
			for i := range next {
				key := fmt.Sprintf("parts/%d/part-%04d.txt", i%7, i)
				body := bytes.NewReader(fmt.Appendf(nil, "%d\n%d\n", i, i+parts))
				if _, err := s3test.Client().PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: body}); err != nil {
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

	endpoint := s3test.Proxy(t, func(server http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-time.After(delay):
				server.ServeHTTP(w, r)
			}
		})
	})
	start := time.Now()
	r := NewReader(Config{Workers: 2, S3: objects.S3Config{Endpoint: endpoint}})
	set, err := r.ReadIDs(t.Context(), []Input{{Path: "s3://" + bucket + "/parts/**/*.txt"}})
	require.NoError(t, err)
	require.Len(t, idsOf(set), 2*parts)
	require.Len(t, r.Reports(), parts)
	require.Less(t, time.Since(start), parts*delay/2/2, "%d parts, of which two at a time would take %s", parts, parts*delay/2)
}
