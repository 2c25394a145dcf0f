package pressure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/audit/audittest"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/objects"
)

// TestOfAnAudit counts the files of an audit: without the users who were erased, with lost records as gaps, and with a
// word about a file that cannot be read.
func TestOfAnAudit(t *testing.T) {
	t.Parallel()
	at, err := objects.Open(t.Context(), t.TempDir(), objects.S3Config{})
	require.NoError(t, err)
	audittest.Policy(t, at, "p", "")
	policy := &capping.Policy{Version: "p", Channels: map[string]capping.Channel{"push": 1},
		Default: []capping.Limit{{Name: "weekly", Max: 1, Window: Week}}}
	a := archive.New(at, func([]byte) (*capping.Policy, error) { return policy, nil })
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	_, _, ok, err := Latest(t.Context(), a, capping.InstantOf(now))
	require.NoError(t, err)
	require.False(t, ok, "there are no calls")

	w := audittest.NewWriter(at, 1)
	sequence := uint64(0)
	call := func(ago time.Duration, id string, users ...uint32) *audit.Record {
		sequence++
		return &audit.Record{Kind: audit.Filter, Instance: w.Instance, Sequence: sequence, Channel: 1, Config: "p",
			Generation: "g", At: capping.InstantOf(now.Add(-ago)), Message: capping.Message{ID: id},
			Groups: []audit.Group{{Outcome: audit.Allowed, Users: bitmap.Of(users...)}}}
	}
	w.Roll(t, audittest.Frames(call(50*time.Hour, "a", 1, 2, 3))...)
	damaged := w.Roll(t, audittest.Frames(call(49*time.Hour, "b", 1, 2, 3))...)
	w.Roll(t, audittest.Frames(call(2*time.Hour, "c", 2, 3))...)
	require.NoError(t, at.Overwrite(t.Context(), damaged.Key, []byte("no records")))
	audittest.Erase(t, at, 1, capping.InstantOf(now.Add(-time.Hour)), 3)

	config, generation, ok, err := Latest(t.Context(), a, capping.InstantOf(now))
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "p g", config+" "+generation)
	cfg := Config{Until: capping.InstantOf(now), Weeks: 1, Policy: policy}
	got, err := Of(t.Context(), a, cfg)
	require.NoError(t, err)
	require.Len(t, got.Faults, 1)
	require.Contains(t, got.Faults[0], damaged.Key)
	require.EqualValues(t, 1, got.Gaps)
	require.EqualValues(t, 2, got.Records)
	week := got.People[0].Weeks[0]
	require.Equal(t, []int64{1, 1, 0}, week.Got[:3], "1 got a, 2 got a and c")
	require.Nil(t, week.None, "no segment is known")
	require.Equal(t, []api.PressureLimitUsers{{Name: "weekly", Max: 1, Window: "168h", Users: 2}},
		got.AtLimits[0].Limits)

	later := call(time.Hour, "d", 4)
	later.Config = "lost"
	w.Roll(t, audittest.Frames(later)...)
	got, err = Of(t.Context(), a, cfg)
	require.NoError(t, err)
	require.Len(t, got.Faults, 2)
	require.Contains(t, got.Faults[1], `policy "lost"`)
	require.EqualValues(t, 2, got.People[0].Weeks[0].Got[0])
}
