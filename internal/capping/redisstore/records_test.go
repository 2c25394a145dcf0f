package redisstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping/redisstore/script"
	"capper/internal/pacing"
)

// Instances add to shared counts, and the next instance drops expired ones.
func TestNumbersOfRecordsAreShared(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_900_000_000, 0)
	late := pacing.RecordGroup{Client: "crm of two words", Kind: pacing.RequestRecord, Expires: now.Unix() + 100}
	soon := pacing.RecordGroup{Client: "", Kind: pacing.LogRecord, Expires: now.Unix() + 10}
	name := namespace()
	var stores []*Store
	for range 2 {
		stores = append(stores, openShared(t, func(c *Config) { c.Namespace = name }))
	}
	got, err := stores[0].AddRecords(t.Context(), nil, now)
	require.NoError(t, err)
	require.Empty(t, got)
	for range 3 {
		for _, s := range stores {
			got, err = s.AddRecords(t.Context(), map[pacing.RecordGroup]int{late: 2, soon: 1}, now)
			require.NoError(t, err)
		}
	}
	require.Equal(t, map[pacing.RecordGroup]int{late: 12, soon: 6}, got)
	got, err = stores[1].AddRecords(t.Context(), nil, now.Add(10*time.Second))
	require.NoError(t, err)
	require.Equal(t, map[pacing.RecordGroup]int{late: 12}, got)
	got, err = stores[0].AddRecords(t.Context(), nil, now)
	require.NoError(t, err)
	require.Equal(t, map[pacing.RecordGroup]int{late: 12}, got, "removed from the store")

	node := admin(t, stores[0].top.Route(stores[0].keyspace.PartitionOf("pacers")).Addr())
	life, err := node.PTTL(t.Context(), stores[0].recordsKey()).Result()
	require.NoError(t, err)
	require.Positive(t, life)
}

// No bucket has the key of the record counts.
func TestNumbersOfRecordsLieBesideBuckets(t *testing.T) {
	t.Parallel()
	key := (&Store{keyspace: script.Standard, prefixes: script.Standard.Prefixes("fc")}).recordsKey()
	require.Contains(t, key, "}:pn:records")
}

// Unreadable fields are dropped, and every other field decodes to the group that it was made from.
func FuzzRecordFields(f *testing.F) {
	for _, field := range []string{"r 1900000000 crm", "m 1 ", "x 1 crm", "r one crm", "r 1", "", "rr 1 crm", "r +1 a",
		"r -5 a b"} {
		f.Add(field, "7")
	}
	f.Add("r 1900000000 crm", "-1")
	f.Add("r 1900000000 crm", "99999999999999999999")
	f.Fuzz(func(t *testing.T, field, number string) {
		groups, dropped := readRecords(map[string]string{field: number}, time.Unix(1000, 0))
		require.Equal(t, 1, len(groups)+len(dropped))
		for group, n := range groups {
			again, ok := parseRecordField(recordField(group))
			require.True(t, ok)
			require.Equal(t, group, again)
			require.Positive(t, n)
			require.Greater(t, group.Expires, int64(1000))
		}
	})
}
