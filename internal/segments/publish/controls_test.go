package publish

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/objects/objectstest"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

func TestWhatWasRolledBackFromIsRefused(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, store objects.Location) {
		ctx := t.Context()
		clock := segmentstest.Stepping()
		p := Publisher{Location: store, ToolVersion: "test", Clock: clock}
		good := publish(t, store, clock, []string{"vip", "new"}, bitmap.Of(1), bitmap.Of(2))
		bad := &Candidate{Names: []string{"vip", "new"}, Bitmaps: []*bitmap.Bitmap{bitmap.Of(3), bitmap.Of(4)}}
		publish(t, store, clock, bad.Names, bad.Bitmaps...)
		rollBack(t, store, good.Generation)
		publishBad := func(reason string) error {
			base, err := ReadLiveState(ctx, store)
			require.NoError(t, err)
			_, err = p.Publish(ctx, bad, base, reason)
			return err
		}
		var withdrawn *WithdrawnError
		require.ErrorAs(t, publishBad(""), &withdrawn)
		require.Equal(t, good, live(t, store).Manifest)
		// The same users under other names are something else.
		publish(t, store, clock, []string{"new", "vip"}, bad.Bitmaps...)
		require.ErrorAs(t, publishBad(""), &withdrawn)
		require.NoError(t, publishBad("it is right"))
		publish(t, store, clock, []string{"vip", "new"}, bitmap.Of(5), bitmap.Of(6))
		require.NoError(t, publishBad(""))
	})
}

// TestAHoldAndARollbackBetweenAnyTwoSteps checks that a publisher that started before a rollback or a
// hold does not go live after it, at whatever step the change happens.
func TestAHoldAndARollbackBetweenAnyTwoSteps(t *testing.T) {
	t.Parallel()
	for _, withHold := range []bool{false, true} {
		objectstest.OnEveryLocation(t, func(t *testing.T, location string, store objects.Location) {
			clock := segmentstest.Stepping()
			p := Publisher{Location: store, ToolVersion: "test", Clock: clock}
			first, stride := eachStep(location)
			for n := first; ; n += stride {
				good := publish(t, store, clock, []string{"vip", "new"}, bitmap.Of(1), bitmap.Of(2))
				bad := publish(t, store, clock, oldContent().Names, oldContent().Bitmaps...)
				publish(t, store, clock, []string{"vip", "new"}, bitmap.Of(7), bitmap.Of(8))
				atOnce := ""
				slow, ran := atCall(store, n, func() {
					if withHold {
						require.NoError(t, p.SetHold(t.Context(), "wait"))
					} else {
						rollBack(t, store, bad.Generation)
						rollBack(t, store, good.Generation)
					}
					atOnce = live(t, store).Manifest.Generation
				})
				base, err := ReadLiveState(t.Context(), slow)
				require.NoError(t, err)
				fast := Publisher{Location: slow, ToolVersion: "test", Clock: clock}
				_, err = fast.Publish(t.Context(), oldContent(), base, "")
				if !ran.Load() {
					require.NoError(t, err)
					require.Greater(t, n, 5)
					return
				}
				if after := live(t, store).Manifest.Generation; err != nil {
					require.Equal(t, atOnce, after, "call %d: %v", n, err)
				} else if after != atOnce { // it was through before
					t.Fatalf("call %d: %s went live over %s", n, after, atOnce)
				}
				_, err = p.ReleaseHold(t.Context())
				require.NoError(t, err)
				require.NoError(t, changeControls(t.Context(), store, func(c *controls) { c.Withdrawn = nil }))
			}
		})
	}
}

// TestReleaseOfAHoldWhereNothingIs checks that releasing a hold at an empty location is an error,
// because the location is probably misspelt.
func TestReleaseOfAHoldWhereNothingIs(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, store objects.Location) {
		p := Publisher{Location: store, ToolVersion: "test"}
		_, err := p.ReleaseHold(t.Context())
		require.ErrorIs(t, err, segments.ErrNothingLive)
		require.NoError(t, p.SetHold(t.Context(), "not yet"))
		was, err := p.ReleaseHold(t.Context())
		require.NoError(t, err, "before the first publish there may be a hold")
		require.Equal(t, "not yet", was.Reason)
		publish(t, store, segmentstest.Stepping(), []string{"vip"}, bitmap.Of(1))
		was, err = p.ReleaseHold(t.Context())
		require.NoError(t, err)
		require.Nil(t, was)
	})
}

func TestControlsAreReadStrictly(t *testing.T) {
	t.Parallel()
	store := objectstest.Open(t, t.TempDir())
	_, err := store.Replace(context.Background(), segments.ControlsKey, []byte(`{"format_version": 1, "holt": {}}`), "")
	require.NoError(t, err)
	_, err = ReadControls(t.Context(), store)
	require.ErrorContains(t, err, `controls.json: json: unknown field "holt"`)
	p := Publisher{Location: store, ToolVersion: "test"}
	_, err = p.Publish(t.Context(), oldContent(), &LiveState{}, "")
	require.ErrorContains(t, err, "controls.json", "what cannot be read is no permission")
}

// TestASegmentThatWasRolledBackFromIsRefused checks that a withdrawn segment is refused beside other
// changed segments and in another order, and that an unchanged segment is not.
func TestASegmentThatWasRolledBackFromIsRefused(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, store objects.Location) {
		clock := segmentstest.Stepping()
		p := Publisher{Location: store, ToolVersion: "test", Clock: clock}
		bad, bot, same := bitmap.Range(0, 60_000), bitmap.Range(100_000, 200_000), bitmap.Range(300_000, 400_000)
		good := publish(t, store, clock, []string{"vip", "active"}, bitmap.Range(0, 70_000), same)
		withdrawn := publish(t, store, clock, []string{"vip", "active", "bots"}, bad, same, bot)
		rollBack(t, store, good.Generation)
		try := func(reason string, names []string, bitmaps ...*bitmap.Bitmap) error {
			base, err := ReadLiveState(t.Context(), store)
			require.NoError(t, err)
			_, err = p.Publish(t.Context(), &Candidate{Names: names, Bitmaps: bitmaps}, base, reason)
			return err
		}
		grown := bitmap.Range(300_000, 400_001)
		refusal := ` the same users as in ` + withdrawn.Generation + `, which was rolled back from at `
		require.ErrorContains(t, try("", []string{"vip", "active"}, bad, grown), `segment "vip" has`+refusal)
		require.ErrorContains(t, try("", []string{"active", "vip", "bots"}, same, bad, bot), `segment "vip" has`+
			refusal)
		require.ErrorContains(t, try("", []string{"active", "bots"}, grown, bot), `segment "bots" has`+refusal)
		var back *WithdrawnError
		require.ErrorAs(t, try("", []string{"vip", "active", "bots"}, bad, same, bot), &back)
		require.Empty(t, back.Part, "the whole content is told as that")
		require.Equal(t, good, live(t, store).Manifest)

		// What differs in every segment passes, and so does a segment that both have.
		require.NoError(t, try("", []string{"vip", "active", "bots"}, bitmap.Range(0, 60_001), same,
			bitmap.Range(100_000, 200_001)))
		require.Error(t, try("", []string{"vip", "active"}, bad, grown), "it stays withdrawn")

		// A reason allows the segments that it is given for, and no others.
		require.NoError(t, try("it is right", []string{"vip", "active"}, bad, grown))
		require.NoError(t, try("", []string{"vip", "active"}, bad, same), "it is live")
		require.NoError(t, try("", []string{"vip", "active"}, bitmap.Range(0, 5), same))
		require.NoError(t, try("", []string{"active", "vip"}, same, bad), "it is withdrawn no more")
		require.ErrorContains(t, try("", []string{"vip", "bots"}, bad, bot), `segment "bots" has`+refusal)

		// A rollback to it takes it back.
		rollBack(t, store, withdrawn.Generation)
		require.NoError(t, try("", []string{"vip", "bots"}, bad, bot))
	})
}

// TestControlsOfAnOlderTool checks that a tool that knows only whole contents can read the document,
// and that its entries are respected.
func TestControlsOfAnOlderTool(t *testing.T) {
	t.Parallel()
	store := objectstest.Open(t, t.TempDir())
	clock := segmentstest.Stepping()
	good := publish(t, store, clock, []string{"vip", "new"}, bitmap.Of(1), bitmap.Of(2))
	bad := publish(t, store, clock, []string{"vip", "new"}, bitmap.Of(3), bitmap.Of(2))
	rollBack(t, store, good.Generation)
	type older struct {
		FormatVersion int   `json:"format_version"`
		Hold          *Hold `json:"hold,omitempty"`
		Withdrawn     []struct {
			Generation string    `json:"generation"`
			Content    string    `json:"content"`
			At         time.Time `json:"at"`
		} `json:"withdrawn,omitempty"`
	}
	raw, tag, err := store.ReadTagged(t.Context(), segments.ControlsKey, "")
	require.NoError(t, err)
	var known older
	require.NoError(t, segments.DecodeDocument(raw, &known))
	require.Len(t, known.Withdrawn, 2)
	require.Equal(t, segments.Content(bad.Segments), known.Withdrawn[1].Content)

	known.Withdrawn = known.Withdrawn[1:] // what it would have stored
	raw, err = json.Marshal(known)
	require.NoError(t, err)
	_, err = store.Replace(t.Context(), segments.ControlsKey, raw, tag)
	require.NoError(t, err)
	c, err := ReadControls(t.Context(), store)
	require.NoError(t, err)
	require.Len(t, c.Refusals(bad, &LiveState{}), 1)
	require.Empty(t, c.Refusals(&segments.Manifest{Segments: bad.Segments[:1]}, &LiveState{}))
}

// TestManyWithdrawalsAreStillRead checks that the document stays small enough to be read after many
// withdrawals of many segments.
func TestManyWithdrawalsAreStillRead(t *testing.T) {
	t.Parallel()
	store := objectstest.Open(t, t.TempDir())
	p := Publisher{Location: store, ToolVersion: "test", Clock: segmentstest.Stepping()}
	list := func(sum string) (l []segments.Segment) {
		for i := range segments.MaxSegments {
			l = append(l, segments.Segment{Name: fmt.Sprint("s", i), SHA256: segments.Sum([]byte(sum))})
		}
		return l
	}
	to := &segments.Manifest{Segments: list("good")}
	const rounds = maxWithdrawn/segments.MaxSegments + 2
	for i := range rounds {
		base := &LiveState{Name: "20261122T030641.749Z-ccacf5f3",
			manifest: &segments.Manifest{Segments: list(fmt.Sprint("bad", i))}}
		require.NoError(t, p.withdraw(t.Context(), base, to))
	}
	c, err := ReadControls(t.Context(), store)
	require.NoError(t, err)
	require.Len(t, c.Withdrawn, maxWithdrawn)
	last := fmt.Sprint("bad", rounds-1)
	require.Len(t, c.Refusals(&segments.Manifest{Segments: list(last)[3:]}, &LiveState{}), segments.MaxSegments-3)
	require.Len(t, c.Refusals(&segments.Manifest{Segments: list(last)}, &LiveState{}), 1)
}
