package publish

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/objects/objectstest"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

// counted counts the requests for controls.json and the reads of its content.
type counted struct {
	objects.Location
	asked, read int
}

func (c *counted) ReadTagged(ctx context.Context, key, tag string) ([]byte, string, error) {
	body, tag, err := c.Location.ReadTagged(ctx, key, tag)
	if key == segments.ControlsKey {
		c.asked++
		if err == nil {
			c.read++
		}
	}
	return body, tag, err
}

func TestASessionReadsTheControlsOnce(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, store objects.Location) {
		ctx, clock := t.Context(), segmentstest.Stepping()
		good := publish(t, store, clock, []string{"vip"}, bitmap.Of(1))
		publish(t, store, clock, []string{"vip"}, bitmap.Of(2))
		rollBack(t, store, good.Generation) // writes controls.json
		at := &counted{Location: store}
		p := Publisher{Location: at, ToolVersion: "test", Clock: clock}

		session := &Session{}
		held, err := session.Hold(ctx, at)
		require.NoError(t, err)
		require.NoError(t, held)
		base, err := session.ReadLive(ctx, at)
		require.NoError(t, err)
		controls, err := base.Controls(ctx, at)
		require.NoError(t, err)
		require.NotEmpty(t, controls.Withdrawn)
		_, err = p.Publish(ctx, &Candidate{Names: []string{"vip"}, Bitmaps: []*bitmap.Bitmap{bitmap.Of(3)}}, base, "")
		require.NoError(t, err)
		require.Equal(t, []int{3, 1}, []int{at.asked, at.read})
	})
}

// TestASessionSeesEveryChangeOfTheControls checks that a session reads the controls again after every
// change.
func TestASessionSeesEveryChangeOfTheControls(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, store objects.Location) {
		ctx, clock := t.Context(), segmentstest.Stepping()
		p := Publisher{Location: store, ToolVersion: "test", Clock: clock}
		session := &Session{}
		held := func() bool {
			held, err := session.Hold(ctx, store)
			require.NoError(t, held, "nothing only grows")
			if err != nil {
				require.ErrorAs(t, err, new(*HoldError))
			}
			return err != nil
		}
		require.False(t, held(), "there is no document")
		require.NoError(t, p.SetHold(ctx, "first"))
		require.True(t, held())
		require.True(t, held())
		_, err := p.ReleaseHold(ctx)
		require.NoError(t, err)
		require.False(t, held())
		publish(t, store, clock, []string{"vip"}, bitmap.Of(1))
		base, err := session.ReadLive(ctx, store)
		require.NoError(t, err)
		require.NoError(t, p.SetHold(ctx, "while the build was comparing"))
		_, err = p.Publish(ctx, &Candidate{Names: []string{"vip"}, Bitmaps: []*bitmap.Bitmap{bitmap.Of(3)}}, base, "")
		require.ErrorAs(t, err, new(*HoldError))
		require.NoError(t, store.Delete(ctx, segments.ControlsKey))
		require.False(t, held(), "the document is gone")
	})
}
