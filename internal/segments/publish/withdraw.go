package publish

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"capper/internal/segments"
)

// SetHold stops all publishing at a location, also of who has begun. A hold that
// is there already gets the new reason.
func (p *Publisher) SetHold(ctx context.Context, reason string) error {
	if reason = strings.ToValidUTF8(strings.TrimSpace(reason), "\ufffd"); reason == "" {
		return errors.New("a hold must have a reason")
	}
	since := p.now().UTC().Truncate(time.Second)
	err := changeControls(ctx, p.Location, func(c *controls) { c.Hold = &Hold{Reason: reason, Since: since} })
	if err != nil {
		return err
	}
	// Who has looked for a hold already has to look again before the swap.
	if _, err = fence(ctx, p.Location); errors.Is(err, segments.ErrNothingLive) {
		return nil
	}
	return err
}

// ReleaseHold ends a hold and returns it; nil when there was none. ErrNothingLive
// when there was none and nothing is published either: it is the wrong location.
func (p *Publisher) ReleaseHold(ctx context.Context) (*Hold, error) {
	var was *Hold
	err := changeControls(ctx, p.Location, func(c *controls) { was, c.Hold = c.Hold, nil })
	if err != nil {
		return nil, err
	}
	if was == nil {
		_, _, err = segments.ReadPointer(ctx, p.Location, "")
	}
	return was, err
}

// withdraw notes that base is rolled back from, and that to is not any more.
// The note comes before the swap: whoever reads current.json after it finds the note.
func (p *Publisher) withdraw(ctx context.Context, base *LiveState, to *segments.Manifest) error {
	at := p.now().UTC().Truncate(time.Second)
	return changeControls(ctx, p.Location, func(c *controls) {
		c.lift(to)
		if base.manifest == nil {
			return // what it was is not known
		}
		was := base.manifest
		content := segments.Content(was.Segments, was.Sets...)
		if content == segments.Content(to.Segments, to.Sets...) {
			return
		}
		c.lift(was)
		for _, part := range slices.Concat(differing(setParts(was.Sets), setParts(to.Sets)),
			differing(segmentParts(was.Segments), segmentParts(to.Segments))) {
			c.Withdrawn = append(c.Withdrawn, withdrawal{Generation: base.Name, Content: part.content(), At: at})
		}
		c.Withdrawn = append(c.Withdrawn, withdrawal{Generation: base.Name, Content: content, At: at})
		c.Withdrawn = c.Withdrawn[max(0, len(c.Withdrawn)-maxWithdrawn):]
	})
}
