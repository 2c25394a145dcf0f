package publish

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"capper/internal/segments"
)

// SetHold stops all publishing at a location, including publishes that have already started. If a hold already exists,
// SetHold replaces it.
func (p *Publisher) SetHold(ctx context.Context, reason string) error {
	if reason = strings.ToValidUTF8(strings.TrimSpace(reason), "\ufffd"); reason == "" {
		return errors.New("a hold must have a reason")
	}
	since := p.now().UTC().Truncate(time.Second)
	err := changeControls(ctx, p.Location, func(c *controls) { c.Hold = &Hold{Reason: reason, Since: since} })
	if err != nil {
		return err
	}
	// Publishers that have already checked for a hold must check again before they replace current.json.
	if _, err = fence(ctx, p.Location); errors.Is(err, segments.ErrNothingLive) {
		return nil
	}
	return err
}

// ReleaseHold removes the hold (stop of all publishing) and returns this hold. If publishing was not on hold,
// ReleaseHold returns nil. If publishing was not on hold and nothing is published, the error is ErrNothingLive, because
// the location is probably wrong.
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

// The method "withdraw" changes the list of rolled-back content in controls.json. The method "withdraw" adds the
// content of the generation (published version) in the argument "base", and removes the content of the generation in
// the argument "to". Rollbacks call withdraw before they replace current.json, so a process that reads the new
// current.json finds the record.
func (p *Publisher) withdraw(ctx context.Context, base *LiveState, to *segments.Manifest) error {
	at := p.now().UTC().Truncate(time.Second)
	return changeControls(ctx, p.Location, func(c *controls) {
		c.lift(to)
		if base.manifest == nil {
			return // the content of base is unknown
		}
		was := base.manifest
		content := was.Content()
		if content == to.Content() {
			return
		}
		c.lift(was)
		for _, part := range slices.Concat(differing(setParts(was), setParts(to)),
			differing(segmentParts(was), segmentParts(to))) {
			c.Withdrawn = append(c.Withdrawn, withdrawal{Generation: base.Name, Content: part.content(), At: at})
		}
		c.Withdrawn = append(c.Withdrawn, withdrawal{Generation: base.Name, Content: content, At: at})
		c.Withdrawn = c.Withdrawn[max(0, len(c.Withdrawn)-maxWithdrawn):]
	})
}
