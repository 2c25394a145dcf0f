package main

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
)

func TestUsersFallToTheirShares(t *testing.T) {
	t.Parallel()
	users := &Users{First: 100, Count: 10_000, Shares: []share{{"vip", 10}, {"new", 40}}, Seed: 1}
	require.NoError(t, users.Check())
	seen := map[uint32]int{}
	count := []int{0, 0}
	var order []uint32
	for share, id := range users.All(t.Context()) {
		seen[id]++
		count[share]++
		order = append(order, id)
	}
	require.Len(t, seen, count[0]+count[1], "each user once")
	require.InDelta(t, 1000, count[0], 100)
	require.InDelta(t, 4000, count[1], 200)
	require.GreaterOrEqual(t, slices.Min(order), uint32(100))
	require.Less(t, slices.Max(order), uint32(10_100))
	require.False(t, slices.IsSorted(order))
	again := *users
	require.Equal(t, order, syntheticIDs(&again), "the same seed")
	again.Seed = 2
	require.NotEqual(t, order, syntheticIDs(&again))

	users.Contiguous = true
	order = syntheticIDs(users)
	require.True(t, slices.IsSorted(order))
	require.Len(t, order, 5000)
	require.Empty(t, syntheticIDs(&Users{Shares: users.Shares}))
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for range users.All(stopped) {
		count[0] = -1
	}
	require.Equal(t, -1, count[0], "it looks now and then")
}

func syntheticIDs(u *Users) (list []uint32) {
	for _, id := range u.All(context.Background()) {
		list = append(list, id)
	}
	return list
}

func TestUsersThatCannotBe(t *testing.T) {
	t.Parallel()
	require.NoError(t, (&Users{First: 1<<32 - 1, Count: 1}).Check())
	require.ErrorContains(t, (&Users{First: 1<<32 - 1, Count: 2}).Check(),
		"do not fit: the highest possible id is 4294967295")
	require.ErrorContains(t, (&Users{Shares: []share{{"a", 60}, {"b", 50}}}).Check(), "must be at most 100 %")
	require.ErrorContains(t, (&Users{Shares: []share{{"not a name", 6}}}).Check(), "not a name")
}

func TestFormats(t *testing.T) {
	t.Parallel()
	write := func(format string) []byte {
		var out bytes.Buffer
		w, err := newWriter(&out, format, "vip")
		require.NoError(t, err)
		for id := range uint32(5000) {
			require.NoError(t, w.Add(2*id))
		}
		require.NoError(t, w.Close())
		return out.Bytes()
	}
	require.True(t, bytes.HasPrefix(write("text"), []byte("0\n2\n4\n")))
	require.True(t, bytes.HasPrefix(write("csv"), []byte("user_id,segment\n0,vip\n2,vip\n")))
	require.True(t, bytes.HasPrefix(write("parquet"), []byte("PAR1")))
	b, err := bitmap.Read(write("roaring"))
	require.NoError(t, err)
	require.EqualValues(t, 5000, b.Cardinality())
	_, err = newWriter(nil, "xml", "vip")
	require.ErrorContains(t, err, `unknown format "xml"`)
	require.Equal(t, "vip.txt", fileName("vip", "text"))
	require.Equal(t, "vip.parquet", fileName("vip", "parquet"))
}
