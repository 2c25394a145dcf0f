package segments

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatWasRolledBackFromIsRefused(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, _ string, store Store) {
		ctx := t.Context()
		clock := stepping()
		p := Publisher{Store: store, ToolVersion: "test", Clock: clock}
		good := publish(t, store, clock, []string{"vip", "new"}, bitmapOf(1), bitmapOf(2))
		bad := &Candidate{Names: []string{"vip", "new"}, Bitmaps: []*Bitmap{bitmapOf(3), bitmapOf(4)}}
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
		// The same users under other names, or in another order, are something else.
		publish(t, store, clock, []string{"new", "vip"}, bad.Bitmaps...)
		require.ErrorAs(t, publishBad(""), &withdrawn)
		require.NoError(t, publishBad("it is right"))
		publish(t, store, clock, []string{"vip", "new"}, bitmapOf(5), bitmapOf(6))
		require.NoError(t, publishBad(""))
	})
}

// A publisher reads, at each of its steps, what others change meanwhile: none
// that has begun before a rollback or a hold is through goes live after it.
func TestAHoldAndARollbackBetweenAnyTwoSteps(t *testing.T) {
	t.Parallel()
	for _, withHold := range []bool{false, true} {
		onEveryStore(t, func(t *testing.T, _ string, store Store) {
			clock := stepping()
			p := Publisher{Store: store, ToolVersion: "test", Clock: clock}
			for n := 0; ; n++ {
				good := publish(t, store, clock, []string{"vip", "new"}, bitmapOf(1), bitmapOf(2))
				bad := publish(t, store, clock, oldContent().Names, oldContent().Bitmaps...)
				publish(t, store, clock, []string{"vip", "new"}, bitmapOf(7), bitmapOf(8))
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
				fast := Publisher{Store: slow, ToolVersion: "test", Clock: clock}
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
				require.NoError(t, changeControls(t.Context(), store, func(c *Controls) { c.Withdrawn = nil }))
			}
		})
	}
}

func TestControlsAreReadStrictly(t *testing.T) {
	t.Parallel()
	store := openStore(t, t.TempDir())
	_, err := store.Replace(context.Background(), controlsKey, []byte(`{"format_version": 1, "holt": {}}`), "")
	require.NoError(t, err)
	_, err = ReadControls(t.Context(), store)
	require.ErrorContains(t, err, `controls.json: json: unknown field "holt"`)
	p := Publisher{Store: store, ToolVersion: "test"}
	_, err = p.Publish(t.Context(), oldContent(), &LiveState{}, "")
	require.ErrorContains(t, err, "controls.json", "what cannot be read is no permission")
}
