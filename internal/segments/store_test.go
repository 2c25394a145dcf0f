package segments

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"capper/internal/objects/s3test"
)

// onEveryStore runs a test against each implementation of Store, each time
// with a new and empty location.
func onEveryStore(t *testing.T, test func(t *testing.T, location string, store Store)) {
	t.Helper()
	locations := map[string]func(t *testing.T) string{
		"directory": func(t *testing.T) string { return t.TempDir() + "/not/there/yet" },
		"s3":        func(t *testing.T) string { return "s3://" + s3test.Bucket(t) + "/some/prefix" },
		"s3 root":   func(t *testing.T) string { return "s3://" + s3test.Bucket(t) },
	}
	for name, locate := range locations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			location := locate(t)
			test(t, location, openStore(t, location))
		})
	}
}

// newBucket makes a bucket for one test.
func newBucket(t testing.TB) string { return s3test.Bucket(t) }

func openStore(t *testing.T, location string) Store {
	t.Helper()
	store, err := OpenStore(t.Context(), location, S3Config{})
	require.NoError(t, err)
	return store
}

func TestStore(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, location string, store Store) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.Equal(t, location, store.Location())

		t.Run("nothing there", func(t *testing.T) {
			_, _, err := store.ReadTagged(ctx, currentKey, "")
			require.ErrorIs(t, err, ErrNotFound)
			_, err = store.Read(ctx, "bitmaps/x", 10)
			require.ErrorIs(t, err, ErrNotFound)
			list, err := store.List(ctx, "bitmaps/")
			require.NoError(t, err)
			require.Empty(t, list)
			require.NoError(t, store.Delete(ctx, "bitmaps/x"))
		})
		t.Run("put once", func(t *testing.T) {
			written, err := store.Put(ctx, "bitmaps/a.roaring", []byte("hello"))
			require.NoError(t, err)
			require.True(t, written)
			written, err = store.Put(ctx, "bitmaps/a.roaring", []byte("hello"))
			require.NoError(t, err)
			require.False(t, written, "the object was there")
			body, err := store.Read(ctx, "bitmaps/a.roaring", 5)
			require.NoError(t, err)
			require.Equal(t, "hello", string(body))
			_, err = store.Read(ctx, "bitmaps/a.roaring", 4)
			require.ErrorContains(t, err, "5 bytes")
		})
		t.Run("put over a torn object", func(t *testing.T) {
			written, err := store.Put(ctx, "bitmaps/a.roaring", []byte("hello, world"))
			require.NoError(t, err)
			require.True(t, written)
		})
		t.Run("overwrite", func(t *testing.T) {
			before := changedAt(ctx, t, store, "bitmaps/a.roaring")
			require.EventuallyWithT(t, func(c *assert.CollectT) { // times of some servers are whole seconds
				require.NoError(c, store.Overwrite(ctx, "bitmaps/a.roaring", []byte("hello, world")))
				require.True(c, changedAt(ctx, t, store, "bitmaps/a.roaring").After(before))
			}, 10*time.Second, 100*time.Millisecond)
			require.NoError(t, store.Overwrite(ctx, "bitmaps/gone.roaring", []byte("again")))
			body, err := store.Read(ctx, "bitmaps/gone.roaring", 5)
			require.NoError(t, err)
			require.Equal(t, "again", string(body))
			require.NoError(t, store.Delete(ctx, "bitmaps/gone.roaring"))
		})
		t.Run("large object in parts", func(t *testing.T) {
			body := make([]byte, 40<<20+12345)
			_, _ = rand.Read(body)
			_, err := store.Put(ctx, "bitmaps/large.roaring", body)
			require.NoError(t, err)
			got, err := store.Read(ctx, "bitmaps/large.roaring", int64(len(body)))
			require.NoError(t, err)
			require.True(t, bytes.Equal(body, got))
			_, err = store.Read(ctx, "bitmaps/large.roaring", int64(len(body))-1)
			require.ErrorContains(t, err, "at most")
		})
		t.Run("list and delete", func(t *testing.T) {
			list, err := store.List(ctx, "bitmaps/")
			require.NoError(t, err)
			require.Len(t, list, 2)
			require.Equal(t, "bitmaps/a.roaring", list[0].Key)
			require.EqualValues(t, 12, list[0].SizeBytes)
			require.WithinDuration(t, time.Now(), list[0].ChangedAt, time.Minute)
			require.NoError(t, store.Delete(ctx, "bitmaps/large.roaring"))
			list, err = store.List(ctx, "bitmaps/")
			require.NoError(t, err)
			require.Len(t, list, 1)
		})
		t.Run("compare and swap", func(t *testing.T) { testReplace(ctx, t, store) })
	})
}

func changedAt(ctx context.Context, t *testing.T, store Store, key string) time.Time {
	list, err := store.List(ctx, key)
	require.NoError(t, err)
	require.Len(t, list, 1)
	return list[0].ChangedAt
}

func testReplace(ctx context.Context, t *testing.T, store Store) {
	_, err := store.Replace(ctx, currentKey, []byte("0"), "some-tag")
	require.ErrorIs(t, err, ErrLostRace, "there is none yet")
	first, err := store.Replace(ctx, currentKey, []byte("1"), "")
	require.NoError(t, err)
	_, err = store.Replace(ctx, currentKey, []byte("2"), "")
	require.ErrorIs(t, err, ErrLostRace, "there is one already")
	body, tag, err := store.ReadTagged(ctx, currentKey, "")
	require.NoError(t, err)
	require.Equal(t, "1", string(body))
	require.Equal(t, first, tag)
	_, _, err = store.ReadTagged(ctx, currentKey, tag)
	require.ErrorIs(t, err, ErrNotModified)

	second, err := store.Replace(ctx, currentKey, []byte("2"), tag)
	require.NoError(t, err)
	_, err = store.Replace(ctx, currentKey, []byte("3"), tag)
	require.ErrorIs(t, err, ErrLostRace, "the tag is an old one")
	body, tag, err = store.ReadTagged(ctx, currentKey, tag)
	require.NoError(t, err)
	require.Equal(t, "2", string(body))
	require.Equal(t, second, tag)

	var won atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			_, err := store.Replace(ctx, currentKey, fmt.Appendf(nil, "racer %d", i), tag)
			if err == nil {
				won.Add(1)
			} else if !errors.Is(err, ErrLostRace) {
				t.Errorf("racer %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, won.Load(), "exactly one of the racers wins")
}

func TestStoreStopsWithItsContext(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, _ string, store Store) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := store.Put(ctx, "bitmaps/a.roaring", []byte("x"))
		require.ErrorIs(t, err, context.Canceled)
		_, _, err = store.ReadTagged(ctx, currentKey, "")
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestOpenStoreRefusesWhatIsNoLocation(t *testing.T) {
	t.Parallel()
	for location, want := range map[string]string{
		"":              "no location",
		"s3://":         "no bucket",
		"s3:///prefix":  "no bucket",
		"gs://bucket/x": `unknown scheme "gs"`,
	} {
		_, err := OpenStore(t.Context(), location, S3Config{})
		require.ErrorContains(t, err, want, "location %q", location)
	}
}
