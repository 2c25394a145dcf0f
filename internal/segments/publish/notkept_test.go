package publish

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/objects"
	"capper/internal/objects/objectstest"
	"capper/internal/objects/s3test"
	"capper/internal/segments"
)

// forgetting confirms the first PUTs of each object whose key contains a text, without storing them.
func forgetting(t *testing.T, text string, times int) (endpoint string) {
	var mu sync.Mutex
	seen := map[string]int{}
	return inFrontOfS3(t, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, text) {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		if seen[r.URL.Path]++; seen[r.URL.Path] > times {
			return false
		}
		w.Header().Set("ETag", `"00000000000000000000000000000001"`)
		return true
	})
}

// TestAPublishIsDoneWhenTheStoreHasIt checks that a publish succeeds only if all of its objects exist
// and are live.
func TestAPublishIsDoneWhenTheStoreHasIt(t *testing.T) {
	t.Parallel()
	for _, text := range []string{segments.BitmapsPrefix, segments.GenerationsPrefix, segments.CurrentKey} {
		for name, times := range map[string]int{"once": 1, "twice": 2, "always": 1 << 20} {
			t.Run(text+name, func(t *testing.T) {
				t.Parallel()
				location := "s3://" + s3test.Bucket(t) + "/prod"
				before := objectstest.Open(t, location)
				base, err := ReadLiveState(t.Context(), before)
				require.NoError(t, err)
				first, err := (&Publisher{Location: before}).Publish(t.Context(), doomedCandidate(7), base, "")
				require.NoError(t, err)

				err = publishThrough(t, location, objects.S3Config{Endpoint: forgetting(t, text, times),
					MaxPause: 50 * time.Millisecond}, time.Minute)
				state, readErr := ReadLiveState(t.Context(), before)
				require.NoError(t, readErr)
				require.NoError(t, state.Fault, "what is live is whole")
				if times < storePasses {
					require.NoError(t, err)
					require.Equal(t, doomedCandidate(1).Describe(), state.Generation.Manifest.Segments)
					return
				}
				require.ErrorContains(t, err, "the storage confirmed the write of ")
				require.ErrorAs(t, err, new(*objects.StorageError))
				require.Equal(t, first.Manifest.Generation, state.Name)
			})
		}
	}
}

// TestDocumentsThatAreNotKeptAreErrors checks that a first publish, a hold and a lease are either
// stored or an error.
func TestDocumentsThatAreNotKeptAreErrors(t *testing.T) {
	t.Parallel()
	for _, key := range []string{segments.CurrentKey, segments.ControlsKey, leaseKey} {
		location := "s3://" + s3test.Bucket(t) + "/prod"
		at, err := objects.Open(t.Context(), location, objects.S3Config{Endpoint: forgetting(t, key, 1<<20)})
		require.NoError(t, err)
		_, err = swap(t.Context(), at, key, []byte("{}"), "")
		require.EqualError(t, err, location+": the storage confirmed the write of "+key+" 3 times, but did not keep "+
			"the object")
		kept := objectstest.Open(t, location)
		tag, err := swap(t.Context(), kept, key, []byte("{}"), "")
		require.NoError(t, err)
		_, err = swap(t.Context(), at, key, []byte("{ }"), tag)
		require.ErrorContains(t, err, "but did not keep the object")
	}
}

// TestWhatVanishesAfterTheSwapIsStoredAgain checks that an object that disappears after it was seen is
// stored and checked again.
func TestWhatVanishesAfterTheSwapIsStoredAgain(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, at objects.Location) {
		swaps := 0
		remove := &hooked{Location: at, after: func(call, key string) {
			if call == "replace" && key == segments.CurrentKey {
				swaps++
				for _, s := range doomedCandidate(1).Describe() {
					require.NoError(t, at.Delete(context.WithoutCancel(t.Context()), s.Key))
				}
			}
		}}
		_, err := (&Publisher{Location: remove}).Publish(t.Context(), doomedCandidate(1), &LiveState{}, "")
		require.NoError(t, err)
		require.Equal(t, 1, swaps)
		live(t, at)
	})
}

// TestAPublisherThatIsOvertakenSaysSo checks that a publisher returns an error if another one replaces
// its generation before it has been read back.
func TestAPublisherThatIsOvertakenSaysSo(t *testing.T) {
	t.Parallel()
	at := objects.NewDirectory(t.TempDir())
	overtaken := false
	other := &hooked{Location: at}
	other.after = func(call, key string) {
		if call != "replace" || key != segments.CurrentKey || overtaken {
			return
		}
		overtaken = true
		base, err := ReadLiveState(t.Context(), at)
		require.NoError(t, err)
		_, err = (&Publisher{Location: at}).Publish(t.Context(), doomedCandidate(2), base, "")
		require.NoError(t, err)
	}
	_, err := (&Publisher{Location: other}).Publish(t.Context(), doomedCandidate(1), &LiveState{}, "")
	require.ErrorIs(t, err, objects.ErrLostRace)
	require.Equal(t, doomedCandidate(2).Describe(), live(t, at).Manifest.Segments)
}
