package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"capper/internal/objects"
	"capper/internal/segments"
)

// controlsKey is the document that says what must not go live. It stands beside
// current.json, whose readers take no key that they do not know.
const controlsKey = "controls.json"

// maxWithdrawn bounds the list of what was withdrawn, some 200 bytes each; the
// oldest go. There is room for 15 withdrawals of a generation of MaxSegments.
const maxWithdrawn = 4000

// Hold stops all publishing until it is released; roll-backs go on.
type Hold struct {
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
}

// Withdrawal is what was rolled back from, with its generation: all of it, or one
// segment that it had otherwise than the generation that is live instead. It must
// not go live again unasked, under whatever name.
type Withdrawal struct {
	Generation string `json:"generation"`
	// Content is a hash: see Content and contentOf. Both stand in one field, so
	// that a tool that knows of whole contents alone reads and keeps the document.
	Content string    `json:"content"`
	At      time.Time `json:"at"`
}

// Controls is controls.json: what must not go live.
type Controls struct {
	FormatVersion int          `json:"format_version"`
	Hold          *Hold        `json:"hold,omitempty"`
	Withdrawn     []Withdrawal `json:"withdrawn,omitempty"` // in order of time
}

// HoldError: publishing is on hold.
type HoldError struct{ Hold Hold }

func (e *HoldError) Error() string {
	return fmt.Sprintf("publishing is on hold since %s: %s", e.Hold.Since.Format(time.RFC3339), e.Hold.Reason)
}

// WithdrawnError: what was to be published has been rolled back from.
type WithdrawnError struct {
	Withdrawal Withdrawal
	Segment    string // that has its users of then; empty: all have
}

func (e *WithdrawnError) Error() string {
	what := "this is the content of"
	if e.Segment != "" {
		what = fmt.Sprintf("segment %q has the very users that it had in", e.Segment)
	}
	return fmt.Sprintf("%s %s, which was rolled back from at %s", what, e.Withdrawal.Generation, e.Withdrawal.At.Format(time.RFC3339))
}

// Content is a hash of what a generation says about users: names, order and
// users of its segments, not its time.
func Content(list []segments.Segment) string {
	var text strings.Builder
	for _, s := range list {
		fmt.Fprintf(&text, "%s %s\n", s.Name, s.SHA256)
	}
	return segments.Sum([]byte(text.String()))
}

// contentOf is a hash of the name and the users of one segment. It is no Content: no
// name holds a blank.
func contentOf(s *segments.Segment) string {
	return segments.Sum(fmt.Appendf(nil, "segment %s %s\n", s.Name, s.SHA256))
}

// ReadControls reads what must not go live at a location; nothing when nobody has said so.
func ReadControls(ctx context.Context, src objects.Source) (*Controls, error) {
	c, _, err := readControls(ctx, src)
	return c, err
}

func readControls(ctx context.Context, src objects.Source) (*Controls, string, error) {
	c := &Controls{FormatVersion: segments.FormatVersion}
	raw, tag, err := src.ReadTagged(ctx, controlsKey, "")
	if errors.Is(err, objects.ErrNotFound) {
		return c, "", nil
	}
	if err == nil {
		err = segments.DecodeDocument(raw, c)
	}
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", controlsKey, err)
	}
	return c, tag, nil
}

// Refusals returns why segments must not go live over base unasked: they are what
// was rolled back from, or some of them are. What is live may stay.
func (c *Controls) Refusals(list []segments.Segment, base *LiveState) (refusals []*WithdrawnError) {
	var live []segments.Segment
	if base.manifest != nil {
		live = base.manifest.Segments
	}
	content := Content(list)
	if content == Content(live) {
		return nil
	}
	withdrawn := map[string]Withdrawal{}
	for _, w := range c.Withdrawn {
		withdrawn[w.Content] = w
	}
	if w, ok := withdrawn[content]; ok {
		return []*WithdrawnError{{Withdrawal: w}}
	}
	for _, s := range differing(list, live) {
		if w, ok := withdrawn[contentOf(&s)]; ok {
			refusals = append(refusals, &WithdrawnError{Withdrawal: w, Segment: s.Name})
		}
	}
	return refusals
}

// differing lists the segments of list that the other has not, or not with the same users.
func differing(list, other []segments.Segment) []segments.Segment {
	users := map[string]string{}
	for _, s := range other {
		users[s.Name] = s.SHA256
	}
	return slices.DeleteFunc(slices.Clone(list), func(s segments.Segment) bool { return users[s.Name] == s.SHA256 })
}

// withdrawn reports whether a generation was rolled back from.
func (c *Controls) withdrawn(generation string) bool {
	return slices.ContainsFunc(c.Withdrawn, func(w Withdrawal) bool { return w.Generation == generation })
}

// lift forgets that these segments were withdrawn, all together or each.
func (c *Controls) lift(list []segments.Segment) {
	lifted := map[string]bool{Content(list): true}
	for _, s := range list {
		lifted[contentOf(&s)] = true
	}
	c.Withdrawn = slices.DeleteFunc(c.Withdrawn, func(w Withdrawal) bool { return lifted[w.Content] })
}

func (c *Controls) encode() []byte {
	raw, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("encode controls: %v", err)) // no field can fail
	}
	return append(raw, '\n')
}

// changeControls changes controls.json; change may be called more than once.
func changeControls(ctx context.Context, store objects.Location, change func(*Controls)) error {
	for {
		c, tag, err := readControls(ctx, store)
		if err != nil {
			return err
		}
		before := c.encode()
		change(c)
		if slices.Equal(before, c.encode()) {
			return nil
		}
		if _, err := swap(ctx, store, controlsKey, c.encode(), tag); !errors.Is(err, objects.ErrLostRace) {
			return err
		}
	}
}

// SetHold stops all publishing at a location, also of who has begun. A hold that
// is there already gets the new reason.
func (p *Publisher) SetHold(ctx context.Context, reason string) error {
	if reason = strings.ToValidUTF8(strings.TrimSpace(reason), "\ufffd"); reason == "" {
		return errors.New("a hold needs a reason")
	}
	since := p.now().UTC().Truncate(time.Second)
	err := changeControls(ctx, p.Location, func(c *Controls) { c.Hold = &Hold{Reason: reason, Since: since} })
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
	err := changeControls(ctx, p.Location, func(c *Controls) { was, c.Hold = c.Hold, nil })
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
	return changeControls(ctx, p.Location, func(c *Controls) {
		c.lift(to.Segments)
		if base.manifest == nil {
			return // what it was is not known
		}
		content := Content(base.manifest.Segments)
		if content == Content(to.Segments) {
			return
		}
		c.lift(base.manifest.Segments)
		for _, s := range differing(base.manifest.Segments, to.Segments) {
			c.Withdrawn = append(c.Withdrawn, Withdrawal{Generation: base.Name, Content: contentOf(&s), At: at})
		}
		c.Withdrawn = append(c.Withdrawn, Withdrawal{Generation: base.Name, Content: content, At: at})
		c.Withdrawn = c.Withdrawn[max(0, len(c.Withdrawn)-maxWithdrawn):]
	})
}

// mark notes on a generation what the controls say about it.
func (c *Controls) mark(l *Listing) {
	if l.Live {
		l.Hold = c.Hold
	}
	for _, w := range c.Withdrawn {
		if w.Generation == l.Generation || l.Manifest != nil && w.Content == Content(l.Manifest.Segments) {
			l.WithdrawnAt = &w.At
		}
	}
}
