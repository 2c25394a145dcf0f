package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/segments/segmentstest"
)

// dealt is a store and a generation that return drawn outcomes.
type dealt struct {
	segmentstest.WithoutSets

	capping.Store
	verdicts []capping.Verdict
	codes    []uint8
	names    []string
}

func (d *dealt) Filter(_ context.Context, batch *capping.Batch, verdicts []capping.Verdict) error {
	for i := range verdicts {
		verdicts[i] = d.verdicts[i]
		if verdicts[i].Outcome == capping.Denied {
			verdicts[i].Rule %= uint8(len(batch.Rules[batch.Groups[i]]))
		}
	}
	return nil
}

func (d *dealt) ClockTolerance() time.Duration { return 0 }

func (d *dealt) Generation() string               { return "g<1>\u2028" }
func (d *dealt) Names() []string                  { return d.names }
func (d *dealt) Lookup(_ []uint32, codes []uint8) { copy(codes, d.codes) }

var dealtPolicy = &capping.Policy{
	Version: `v"1"`,
	Default: []capping.Limit{{Name: "daily", Max: 1, Window: 24 * time.Hour}, {Name: "never", Window: time.Hour}},
	Segments: map[string][]capping.Limit{
		"new":     {{Name: "weekly é", Max: 3, Window: 168 * time.Hour}},
		"default": {{Name: "daily", Max: 2, Window: 24 * time.Hour}},
	},
}

// numberForm draws a form of answers about dense ids that came as numbers.
var numberForm = rapid.SampledFrom([]Form{InLists, InBitmaps})

// decisions draws the decisions of a call.
func decisions(t *rapid.T, r *FilterRequest) *capping.Decisions {
	ids := rapid.SliceOfNDistinct(rapid.Uint32(), 1, 60, rapid.ID).Draw(t, "users")
	if r.Form == InBitmaps {
		slices.Sort(ids)
	}
	r.Users = capping.AppendUsers(nil, ids)
	d := &dealt{names: []string{"new", "default", "free"}, codes: make([]uint8, len(ids)),
		verdicts: make([]capping.Verdict, len(ids))}
	for i := range ids {
		d.codes[i] = uint8(rapid.IntRange(0, 2).Draw(t, "segment"))
		d.verdicts[i] = capping.Verdict{
			Outcome: rapid.SampledFrom([]capping.Outcome{capping.Allowed, capping.Replayed, capping.Denied,
				capping.Unavailable}).Draw(t, "outcome"),
			Rule: rapid.Uint8().Draw(t, "rule"), FreesAt: capping.Instant(rapid.Int64Range(1, 4e12).Draw(t, "frees")),
		}
		if rapid.IntRange(0, 9).Draw(t, "never") == 0 {
			d.verdicts[i].FreesAt = capping.Never
		}
	}
	capper := capping.New(d, func() capping.Segments { return d }, dealtPolicy, time.Now)
	return capper.Filter(context.Background(), &capping.Send{Message: capping.Message{ID: "m"},
		Users:   capping.AppendUsers(nil, ids),
		Enforce: true, Record: true})
}

// TestFilterAnswersAreTheWireTypes checks that the hand-written encoder produces the output of encoding/json for the
// same type.
func TestFilterAnswersAreTheWireTypes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := &FilterRequest{Counts: rapid.Bool().Draw(t, "counts"), Waves: rapid.Bool().Draw(t, "waves"),
			Record: true, Enforce: true}
		r.Form = numberForm.Draw(t, "form")
		r.Duplicates = rapid.IntRange(0, math.MaxInt32).Draw(t, "duplicates")
		d := decisions(t, r)
		written := EncodeFilter(nil, r, d, Summarize(d))
		if r.Form == InBitmaps {
			requireWireType(t, written, new(api.FilterBitmaps))
		} else {
			requireWireType(t, written, new(api.FilterIDs))
		}
	})
}

func TestReleaseAnswersAreTheWireTypes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := &MessageRequest{}
		r.Form = numberForm.Draw(t, "form")
		r.Users = capping.AppendUsers(nil, rapid.SliceOfNDistinct(rapid.Uint32(), 1, 60, rapid.ID).Draw(t, "users"))
		slices.Sort(r.Users)
		results := make([]capping.Released, len(r.Users))
		for i := range results {
			results[i] = rapid.SampledFrom([]capping.Released{capping.ReleaseDone, capping.ReleaseAbsent,
				capping.ReleaseUnavailable}).Draw(t, "result")
		}
		written, _ := EncodeRelease(nil, r, results)
		if r.Form == InBitmaps {
			requireWireType(t, written, new(api.ReleaseBitmaps))
		} else {
			requireWireType(t, written, new(api.ReleaseIDs))
		}
	})
}

func requireWireType(t *rapid.T, written []byte, into any) {
	decoder := json.NewDecoder(bytes.NewReader(written))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(into), "%s", written)
	again, err := json.Marshal(into)
	require.NoError(t, err)
	require.JSONEq(t, string(again), string(written))
}

// TestReasonsAreNamedAsCallersKnowThem checks that the domain and the API use the same names for reasons to deny.
func TestReasonsAreNamedAsCallersKnowThem(t *testing.T) {
	require.Equal(t, api.LimitSuppressed, capping.BySuppression.Name())
	require.Equal(t, api.LimitHoldout, capping.ByHoldout.Name())
	require.Equal(t, api.LimitQuiet, capping.ByQuiet.Name())
}
