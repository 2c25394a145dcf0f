package publish

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/objects/objectstest"
	"capper/internal/objects/s3test"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

// publish makes the given segments live, in order of their names' first use.
func publish(t testing.TB, store objects.Location, clock func() time.Time, names []string,
	bitmaps ...*bitmap.Bitmap) *segments.Manifest {
	t.Helper()
	return publishAll(t, store, clock, &Candidate{Names: names, Bitmaps: bitmaps})
}

// publishAll makes a candidate live.
func publishAll(t testing.TB, store objects.Location, clock func() time.Time, c *Candidate) *segments.Manifest {
	t.Helper()
	base, err := ReadLiveState(t.Context(), store)
	require.NoError(t, err)
	p := Publisher{Location: store, ToolVersion: "test", Clock: clock}
	done, err := p.Publish(t.Context(), c, base, "")
	require.NoError(t, err)
	return done.Manifest
}

func live(t *testing.T, store objects.Location) *segments.Generation {
	t.Helper()
	g, err := segmentstest.ReadLive(t.Context(), store)
	require.NoError(t, err)
	return g
}

func TestPublish(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, store objects.Location) {
		clock := segmentstest.Stepping()
		names := []string{"vip", "new", "gone"}
		base, err := ReadLiveState(t.Context(), store)
		require.NoError(t, err)
		require.Equal(t, &LiveState{}, base, "nothing is published")
		p := Publisher{Location: store, ToolVersion: "test 1", Clock: clock}
		c := &Candidate{Names: names, Bitmaps: []*bitmap.Bitmap{bitmap.Of(1, 2), bitmap.Of(7), bitmap.Of()}}
		done, err := p.Publish(t.Context(), c, base, "")
		require.NoError(t, err)
		require.Len(t, done.Uploaded, 3)
		require.EqualValues(t, 20+18+8, done.UploadedBytes)
		require.Equal(t, segmentstest.Epoch.Add(time.Second), done.Manifest.CreatedAt)
		require.Regexp(t, `^20261120T101501\.000Z-[0-9a-f]{8}$`, done.Manifest.Generation)
		require.Equal(t, segments.Segment{Name: "gone", Key: segments.BitmapKey(bitmap.Of().SHA256()),
			SHA256: bitmap.Of().SHA256(), SizeBytes: 8}, done.Manifest.Segments[2])
		require.Equal(t, done.Manifest, live(t, store).Manifest)

		t.Run("what is live already changes nothing", func(t *testing.T) {
			before, tag, err := store.ReadTagged(t.Context(), segments.CurrentKey, "")
			require.NoError(t, err)
			base, err := ReadLiveState(t.Context(), store)
			require.NoError(t, err)
			again, err := p.Publish(t.Context(), c, base, "")
			require.NoError(t, err)
			require.True(t, again.Unchanged)
			require.Empty(t, again.Uploaded)
			after, newTag, err := store.ReadTagged(t.Context(), segments.CurrentKey, "")
			require.NoError(t, err)
			require.Equal(t, string(before), string(after))
			require.Equal(t, tag, newTag)
			list, err := store.List(t.Context(), segments.GenerationsPrefix)
			require.NoError(t, err)
			require.Len(t, list, 1)
		})
		t.Run("only what is new is uploaded", func(t *testing.T) {
			base, err := ReadLiveState(t.Context(), store)
			require.NoError(t, err)
			c := &Candidate{Names: names, Bitmaps: []*bitmap.Bitmap{bitmap.Of(1, 2), bitmap.Of(7, 8), bitmap.Of()}}
			done, err := p.Publish(t.Context(), c, base, "because")
			require.NoError(t, err)
			require.Equal(t, []string{segments.BitmapKey(bitmap.Of(7, 8).SHA256())}, done.Uploaded)
			require.Equal(t, "because", live(t, store).Manifest.Reason)
		})
		t.Run("another order is another generation", func(t *testing.T) {
			base, err := ReadLiveState(t.Context(), store)
			require.NoError(t, err)
			c := &Candidate{Names: []string{"new", "vip", "gone"}, Bitmaps: []*bitmap.Bitmap{bitmap.Of(7, 8),
				bitmap.Of(1, 2), bitmap.Of()}}
			done, err := p.Publish(t.Context(), c, base, "")
			require.NoError(t, err)
			require.False(t, done.Unchanged)
			require.Empty(t, done.Uploaded)
		})
	})
}

func TestTwoPublishersAtOnce(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, store objects.Location) {
		for round, published := range []bool{false, true} {
			base, err := ReadLiveState(t.Context(), store)
			require.NoError(t, err)
			require.Equal(t, published, base.Generation != nil)
			const publishers = 4
			faults := make([]error, publishers)
			done := make([]*Published, publishers)
			candidates := make([]*Candidate, publishers)
			var wg sync.WaitGroup
			for i := range publishers {
				candidates[i] = &Candidate{Names: []string{"vip", "new"}, Bitmaps: []*bitmap.Bitmap{bitmap.Of(1, 2),
					bitmap.Of(uint32(100*round + i))}}
				wg.Go(func() {
					p := Publisher{Location: store, ToolVersion: "test"}
					done[i], faults[i] = p.Publish(t.Context(), candidates[i], base, "")
				})
			}
			wg.Wait()
			winner := -1
			for i, err := range faults {
				if err == nil {
					require.Equal(t, -1, winner, "two publishers won")
					winner = i
				} else {
					require.ErrorIs(t, err, objects.ErrLostRace)
				}
			}
			require.GreaterOrEqual(t, winner, 0, "nobody won: %v", faults)
			g := live(t, store)
			require.Equal(t, done[winner].Manifest, g.Manifest)

			// Nothing is lost: the losers run again and then are live. What they had stored is made young again.
			loser := (winner + 1) % publishers
			base, err = ReadLiveState(t.Context(), store)
			require.NoError(t, err)
			p := Publisher{Location: store, ToolVersion: "test"}
			again, err := p.Publish(t.Context(), candidates[loser], base, "")
			require.NoError(t, err)
			require.Equal(t, []string{segments.BitmapKey(candidates[loser].Bitmaps[1].SHA256())}, again.Uploaded)
			require.Equal(t, candidates[loser].Bitmaps[1].Bytes(), live(t, store).Bitmaps[1].Bytes())
		}
	})
}

// amnesic drops the response of the first conditional write, like a faulty network.
type amnesic struct {
	objects.Location
	forgot atomic.Bool
}

func (a *amnesic) Replace(ctx context.Context, key string, body []byte, tag string) (string, error) {
	if newTag, err := a.Location.Replace(ctx, key, body, tag); err != nil || a.forgot.Swap(true) {
		return newTag, err
	}
	return a.Location.Replace(ctx, key, body, tag) // what a retry finds
}

func TestAWriteWhoseAnswerWasLostIsNoLostRace(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, store objects.Location) {
		m := publish(t, &amnesic{Location: store}, segmentstest.Stepping(), []string{"vip"}, bitmap.Of(1))
		require.Equal(t, m.Generation, live(t, store).Manifest.Generation)
	})
}

// The environment variables of the publisher that is killed.
const (
	doomedLocation = "SEGMENTS_TEST_DOOMED_LOCATION"
	doomedStep     = "SEGMENTS_TEST_DOOMED_STEP" // 2n: before the n-th call to the store, 2n+1: after it; -1: never
	doomedChunks   = "SEGMENTS_TEST_DOOMED_CHUNKS"
)

// doomed is a store that kills its own process at one of its steps.
type doomed struct {
	objects.Location
	calls atomic.Int64
	step  int64
}

func (d *doomed) at(step int64) {
	if step == d.step {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

func (d *doomed) Put(ctx context.Context, key string, body []byte) (bool, error) {
	n := d.calls.Add(1) - 1
	d.at(2 * n)
	written, err := d.Location.Put(ctx, key, body)
	d.at(2*n + 1)
	return written, err
}

func (d *doomed) Overwrite(ctx context.Context, key string, body []byte) error {
	n := d.calls.Add(1) - 1
	d.at(2 * n)
	err := d.Location.Overwrite(ctx, key, body)
	d.at(2*n + 1)
	return err
}

func (d *doomed) Delete(ctx context.Context, key string) error {
	n := d.calls.Add(1) - 1
	d.at(2 * n)
	err := d.Location.Delete(ctx, key)
	d.at(2*n + 1)
	return err
}

func (d *doomed) Replace(ctx context.Context, key string, body []byte, tag string) (string, error) {
	n := d.calls.Add(1) - 1
	d.at(2 * n)
	newTag, err := d.Location.Replace(ctx, key, body, tag)
	d.at(2*n + 1)
	return newTag, err
}

// playDoomedPublisher publishes over the live generation in a separate process.
func playDoomedPublisher() int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := func() error {
		store, err := objects.Open(ctx, os.Getenv(doomedLocation), objects.S3Config{})
		if err != nil {
			return err
		}
		step, err := strconv.ParseInt(os.Getenv(doomedStep), 10, 64)
		if err != nil {
			return err
		}
		chunks, err := strconv.Atoi(os.Getenv(doomedChunks))
		if err != nil {
			return err
		}
		if os.Getenv(doomedRole) != "" {
			return playStorm(ctx, &doomed{Location: store, step: step})
		}
		base, err := ReadLiveState(ctx, store)
		if err != nil {
			return err
		}
		p := Publisher{Location: &doomed{Location: store, step: step}, ToolVersion: "doomed"}
		_, err = p.Publish(ctx, doomedCandidate(chunks), base, "")
		return err
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// doomedCandidate returns a candidate whose segment has this many containers of 8 KiB each, with the
// fewest users that fill a container: 4,096.
func doomedCandidate(containers int) *Candidate {
	r := rand.New(rand.NewPCG(1, 2))
	var set bitmap.Set
	for key := range uint32(containers) {
		for i := range uint32(1 << 12) {
			set.Add(key<<16 | i<<4 | r.Uint32N(16))
		}
	}
	return &Candidate{Names: []string{"vip", "new"}, Bitmaps: []*bitmap.Bitmap{bitmap.Of(3, 4), set.Bitmap()}}
}

// TestTheServerChecksWhatItReceives checks that the server detects a flipped bit in small objects and
// in the parts of large ones. The publish then fails and the live generation stays.
func TestTheServerChecksWhatItReceives(t *testing.T) {
	t.Parallel()
	upstream, err := url.Parse(os.Getenv("AWS_ENDPOINT_URL_S3"))
	require.NoError(t, err)
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(upstream)
		r.Out.Host = r.In.Host // it is part of what is signed
		if r.In.Method != http.MethodPut || !strings.Contains(r.In.URL.Path, segments.BitmapsPrefix) {
			return
		}
		body, err := io.ReadAll(r.In.Body)
		if err == nil && len(body) > 0 {
			body[len(body)/2] ^= 1
		}
		r.Out.Body = io.NopCloser(bytes.NewReader(body))
	}})
	defer proxy.Close()
	location := "s3://" + s3test.Bucket(t) + "/prod"
	store := objectstest.Open(t, location)
	first := publish(t, store, segmentstest.Stepping(), []string{"vip", "new"}, bitmap.Of(1, 2), bitmap.Of(3))
	noisy, err := objects.Open(t.Context(), location, objects.S3Config{Endpoint: proxy.URL})
	require.NoError(t, err)
	for _, chunks := range []int{1, 1500} {
		base, err := ReadLiveState(t.Context(), store)
		require.NoError(t, err)
		p := Publisher{Location: noisy, ToolVersion: "test"}
		_, err = p.Publish(t.Context(), doomedCandidate(chunks), base, "")
		require.Error(t, err)
		require.NotErrorIs(t, err, objects.ErrLostRace)
		require.Equal(t, first, live(t, store).Manifest)
	}
	list, err := store.List(t.Context(), segments.BitmapsPrefix)
	require.NoError(t, err)
	require.Len(t, list, 2, "nothing damaged was stored")
}
