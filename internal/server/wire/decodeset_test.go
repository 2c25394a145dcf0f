package wire

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/client/api"
	"capper/internal/capping"
)

var (
	setNow    = time.Date(2026, 11, 20, 9, 12, 44, 0, time.UTC)
	setBounds = Bounds{IDs: api.MaxUserIDs, Bitmap: api.MaxBitmapUsers, Reserve: func(int64) error { return nil }}
)

func decodeSet(body []byte) (*SetChange, error) {
	return DecodeSetChange(body, setBounds, setNow, setNow.Add(time.Second))
}

// TestChangesOfSetsAreDecoded compares the decoder with the type of the request.
func TestChangesOfSetsAreDecoded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		users := rapid.SliceOfNDistinct(rapid.Uint32(), 1, 40, rapid.ID).Draw(t, "users")
		n := rapid.IntRange(0, len(users)).Draw(t, "added")
		change := api.SetChange{}
		lists := func(ids []uint32, list *[]uint32, bits **api.Bitmap) {
			switch {
			case len(ids) == 0:
			case rapid.Bool().Draw(t, "bitmap"):
				*bits = &api.Bitmap{Bitmap: roaring.BitmapOf(ids...)}
			default:
				*list = append(slices.Clone(ids), ids[0])
			}
		}
		lists(users[:n], &change.Add, &change.AddBitmap)
		lists(users[n:], &change.Remove, &change.RemoveBitmap)
		want := &SetChange{}
		if rapid.Bool().Draw(t, "at") {
			at := setNow.Add(-time.Duration(rapid.Int64Range(-900, 1e9).Draw(t, "ago")) * time.Millisecond)
			change.At, want.At = &at, min(capping.InstantOf(at), capping.InstantOf(setNow))
		}
		want.Add, want.Remove = capping.AppendUsers(nil, sortedOrNil(users[:n])), capping.AppendUsers(nil,
			sortedOrNil(users[n:]))
		body, err := json.Marshal(change)
		require.NoError(t, err)
		got, err := decodeSet(body)
		require.NoError(t, err, string(body))
		require.Equal(t, want, got)
		require.Equal(t, len(users), got.Users())
	})
}

func sortedOrNil(ids []uint32) []uint32 {
	if len(ids) == 0 {
		return nil
	}
	return slices.Sorted(slices.Values(ids))
}

// FuzzSetChange checks that an accepted change has ascending, disjoint lists within the bounds.
func FuzzSetChange(f *testing.F) {
	for _, body := range []string{
		`{}`, `{"add":[1]}`, `{"add":[3,1,1],"remove":[2],"at":"2026-11-20T09:00:00Z"}`, `{"add":[],"remove":[4294967295]}`,
		`{"add_bitmap":"OjAAAAEAAAAAAAIAEAAAAAcAKgBjAA=="}`, `{"remove_bitmap":"OjA","add":[1]}`, `{"add":[1],"remove":[1]}`,
		`{"add":[1],"at":"2023-01-01T00:00:00Z"}`, `{"add":[1],"at":"2026-11-20T17:12:44.5+08:00"}`, `{"add":[1]}x`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := decodeSet(body)
		if err != nil {
			require.NotEmpty(t, FailureOf(err).Message)
			require.NotEqual(t, api.Code(api.CodeInternal), FailureOf(err).Code, err)
			return
		}
		require.True(t, json.Valid(body))
		require.NotZero(t, c.Users())
		require.LessOrEqual(t, c.Users(), api.MaxSetUsers)
		require.True(t, ascending(c.Add) && ascending(c.Remove))
		for _, user := range c.Add {
			require.NotContains(t, c.Remove, user)
		}
		require.True(t, c.At >= 0 && c.At <= capping.InstantOf(setNow))
	})
}
