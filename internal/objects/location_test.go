package objects_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"capper/internal/objects"
	"capper/internal/objects/objectstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLocation(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, location string, at objects.Location) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		require.Equal(t, location, at.Name())

		t.Run("nothing there", func(t *testing.T) {
			_, _, err := at.ReadTagged(ctx, "current.json", "")
			require.ErrorIs(t, err, objects.ErrNotFound)
			_, err = at.Read(ctx, "bitmaps/x", 10)
			require.ErrorIs(t, err, objects.ErrNotFound)
			list, err := at.List(ctx, "bitmaps/")
			require.NoError(t, err)
			require.Empty(t, list)
			require.NoError(t, at.Delete(ctx, "bitmaps/x"))
		})
		t.Run("put once", func(t *testing.T) {
			written, err := at.Put(ctx, "bitmaps/a.roaring", []byte("hello"))
			require.NoError(t, err)
			require.True(t, written)
			written, err = at.Put(ctx, "bitmaps/a.roaring", []byte("hello"))
			require.NoError(t, err)
			require.False(t, written, "the object was there")
			body, err := at.Read(ctx, "bitmaps/a.roaring", 5)
			require.NoError(t, err)
			require.Equal(t, "hello", string(body))
			_, err = at.Read(ctx, "bitmaps/a.roaring", 4)
			require.ErrorContains(t, err, "5 bytes")
		})
		t.Run("put over a torn object", func(t *testing.T) {
			written, err := at.Put(ctx, "bitmaps/a.roaring", []byte("hello, world"))
			require.NoError(t, err)
			require.True(t, written)
		})
		t.Run("overwrite", func(t *testing.T) {
			before := changedAt(ctx, t, at, "bitmaps/a.roaring")
			require.EventuallyWithT(t, func(c *assert.CollectT) { // times of some servers are whole seconds
				require.NoError(c, at.Overwrite(ctx, "bitmaps/a.roaring", []byte("hello, world")))
				require.True(c, changedAt(ctx, t, at, "bitmaps/a.roaring").After(before))
			}, 30*time.Second, 100*time.Millisecond)
			require.NoError(t, at.Overwrite(ctx, "bitmaps/gone.roaring", []byte("again")))
			body, err := at.Read(ctx, "bitmaps/gone.roaring", 5)
			require.NoError(t, err)
			require.Equal(t, "again", string(body))
			require.NoError(t, at.Delete(ctx, "bitmaps/gone.roaring"))
		})
		t.Run("large object in parts", func(t *testing.T) {
			body := make([]byte, 40<<20+12345)
			_, _ = rand.Read(body)
			_, err := at.Put(ctx, "bitmaps/large.roaring", body)
			require.NoError(t, err)
			got, err := at.Read(ctx, "bitmaps/large.roaring", int64(len(body)))
			require.NoError(t, err)
			require.True(t, bytes.Equal(body, got))
			_, err = at.Read(ctx, "bitmaps/large.roaring", int64(len(body))-1)
			require.ErrorContains(t, err, "at most")
		})
		t.Run("list and delete", func(t *testing.T) {
			list, err := at.List(ctx, "bitmaps/")
			require.NoError(t, err)
			require.Len(t, list, 2)
			require.Equal(t, "bitmaps/a.roaring", list[0].Key)
			require.EqualValues(t, 12, list[0].SizeBytes)
			require.WithinDuration(t, time.Now(), list[0].ChangedAt, time.Minute)
			require.NoError(t, at.Delete(ctx, "bitmaps/large.roaring"))
			list, err = at.List(ctx, "bitmaps/")
			require.NoError(t, err)
			require.Len(t, list, 1)
		})
		t.Run("list below folders", func(t *testing.T) {
			for _, key := range []string{"days/1-x", "days/1/b", "days/1/a/deep", "days/2/c", "daysoff/d"} {
				_, err := at.Put(ctx, key, []byte("x"))
				require.NoError(t, err)
			}
			for prefix, want := range map[string][]string{
				"days/":    {"days/1-x", "days/1/a/deep", "days/1/b", "days/2/c"},
				"days":     {"days/1-x", "days/1/a/deep", "days/1/b", "days/2/c", "daysoff/d"},
				"days/1/":  {"days/1/a/deep", "days/1/b"},
				"days/1/b": {"days/1/b"},
				"days/3/":  nil,
			} {
				list, err := at.List(ctx, prefix)
				require.NoError(t, err)
				var keys []string
				for _, o := range list {
					keys = append(keys, o.Key)
				}
				require.Equal(t, want, keys, prefix)
			}
		})
		t.Run("compare and swap", func(t *testing.T) { testReplace(ctx, t, at) })
	})
}

func changedAt(ctx context.Context, t *testing.T, at objects.Location, key string) time.Time {
	list, err := at.List(ctx, key)
	require.NoError(t, err)
	require.Len(t, list, 1)
	return list[0].ChangedAt
}

func testReplace(ctx context.Context, t *testing.T, at objects.Location) {
	_, err := at.Replace(ctx, "current.json", []byte("0"), "some-tag")
	require.ErrorIs(t, err, objects.ErrLostRace, "there is none yet")
	first, err := at.Replace(ctx, "current.json", []byte("1"), "")
	require.NoError(t, err)
	_, err = at.Replace(ctx, "current.json", []byte("2"), "")
	require.ErrorIs(t, err, objects.ErrLostRace, "there is one already")
	body, tag, err := at.ReadTagged(ctx, "current.json", "")
	require.NoError(t, err)
	require.Equal(t, "1", string(body))
	require.Equal(t, first, tag)
	_, _, err = at.ReadTagged(ctx, "current.json", tag)
	require.ErrorIs(t, err, objects.ErrNotModified)

	second, err := at.Replace(ctx, "current.json", []byte("2"), tag)
	require.NoError(t, err)
	_, err = at.Replace(ctx, "current.json", []byte("3"), tag)
	require.ErrorIs(t, err, objects.ErrLostRace, "the tag is an old one")
	body, tag, err = at.ReadTagged(ctx, "current.json", tag)
	require.NoError(t, err)
	require.Equal(t, "2", string(body))
	require.Equal(t, second, tag)

	var won atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			_, err := at.Replace(ctx, "current.json", fmt.Appendf(nil, "racer %d", i), tag)
			if err == nil {
				won.Add(1)
			} else if !errors.Is(err, objects.ErrLostRace) {
				t.Errorf("racer %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, won.Load(), "exactly one of the racers wins")
}

func TestLocationsStopWithTheirContext(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, at objects.Location) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := at.Put(ctx, "bitmaps/a.roaring", []byte("x"))
		require.ErrorIs(t, err, context.Canceled)
		_, _, err = at.ReadTagged(ctx, "current.json", "")
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestOpenRefusesWhatIsNoLocation(t *testing.T) {
	t.Parallel()
	for location, want := range map[string]string{
		"":              "location is empty",
		"s3://":         "the bucket is missing",
		"s3:///prefix":  "the bucket is missing",
		"gs://bucket/x": `unknown scheme "gs"`,
	} {
		_, err := objects.Open(t.Context(), location, objects.S3Config{})
		require.ErrorContains(t, err, want, "location %q", location)
	}
}

// TestAMappedFileIsReadOnly maps a file. Programs that are not root cannot write into it by mistake, and it can still
// be replaced and removed.
func TestAMappedFileIsReadOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := objects.NewDirectory(dir)
	require.NoError(t, d.Overwrite(t.Context(), "a/b", []byte("first")))
	raw, unmap, err := d.Map(t.Context(), "a/b", 5)
	require.NoError(t, err)
	defer unmap()
	stat, err := os.Stat(filepath.Join(dir, "a/b"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o444), stat.Mode().Perm())
	require.NoError(t, d.Overwrite(t.Context(), "a/b", []byte("second")))
	require.Equal(t, "first", string(raw))
	require.NoError(t, os.RemoveAll(dir))
	require.Equal(t, "first", string(raw))
}
