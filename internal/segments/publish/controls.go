package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"capper/internal/objects"
	"capper/internal/segments"
)

// maxWithdrawn bounds the list of what was withdrawn, some 200 bytes each; the
// oldest go. There is room for 15 withdrawals of a generation of MaxSegments; of
// MaxSets that all differ the last are kept.
const maxWithdrawn = 4000

// Hold stops all publishing until it is released; roll-backs go on.
type Hold struct {
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
}

// withdrawal is what was rolled back from, with its generation: all of it, or one
// segment or set that it had otherwise than the generation that is live instead. It must
// not go live again unasked, under whatever name.
type withdrawal struct {
	Generation string `json:"generation"`
	// Content is a hash: see segments.Content and part.content. Both stand in one field, so
	// that a tool that knows of whole contents alone reads and keeps the document.
	Content string    `json:"content"`
	At      time.Time `json:"at"`
}

// controls is controls.json: what must not go live.
type controls struct {
	FormatVersion int          `json:"format_version"`
	Hold          *Hold        `json:"hold,omitempty"`
	Withdrawn     []withdrawal `json:"withdrawn,omitempty"` // in order of time
}

// HoldError: publishing is on hold.
type HoldError struct{ Hold Hold }

func (e *HoldError) Error() string {
	return fmt.Sprintf("publishing is on hold since %s: %s", e.Hold.Since.Format(time.RFC3339), e.Hold.Reason)
}

// WithdrawnError: what was to be published has been rolled back from.
type WithdrawnError struct {
	Withdrawal withdrawal
	Part       string // segment "new", that has its users of then; empty: all have
	Set        string // the name of the part where it is a set
}

func (e *WithdrawnError) Error() string {
	what := "the content equals that of"
	if e.Part != "" {
		what = e.Part + " has the same users as in"
	}
	return fmt.Sprintf("%s %s, which was rolled back from at %s", what, e.Withdrawal.Generation,
		e.Withdrawal.At.Format(time.RFC3339))
}

// part is a segment or a set with its users.
type part struct{ kind, name, sha256 string }

const setKind = "set"

func segmentParts(list []segments.Segment) (parts []part) {
	for _, s := range list {
		parts = append(parts, part{"segment", s.Name, s.SHA256})
	}
	return parts
}

func setParts(list []segments.Set) (parts []part) {
	for _, s := range list {
		parts = append(parts, part{setKind, s.Name, s.SHA256})
	}
	return parts
}

func partsOf(m *segments.Manifest) []part {
	return slices.Concat(segmentParts(m.Segments), setParts(m.Sets))
}

// content is a hash of the kind, the name and the users of a part. It is no segments.Content: no
// segment's name holds a blank.
func (p part) content() string {
	return segments.Sum(fmt.Appendf(nil, "%s %s %s\n", p.kind, p.name, p.sha256))
}

// ReadControls reads what must not go live at a location; nothing when nobody has said so.
func ReadControls(ctx context.Context, src objects.Source) (*controls, error) {
	c, _, err := readControls(ctx, src, "")
	return c, err
}

// readControls returns objects.ErrNotModified when the document still has the tag. The tag "" always reads it.
func readControls(ctx context.Context, src objects.Source, tag string) (*controls, string, error) {
	c := &controls{FormatVersion: segments.FormatVersion}
	raw, tag, err := src.ReadTagged(ctx, segments.ControlsKey, tag)
	if errors.Is(err, objects.ErrNotFound) {
		return c, "", nil
	}
	if err == nil {
		err = segments.DecodeDocument(raw, c)
	}
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", segments.ControlsKey, err)
	}
	return c, tag, nil
}

// Refusals returns why segments and sets must not go live over base unasked: they are what
// was rolled back from, or some of them are. What is live may stay.
func (c *controls) Refusals(list []segments.Segment, sets []segments.Set,
	base *LiveState) (refusals []*WithdrawnError) {
	live := &segments.Manifest{}
	if base.manifest != nil {
		live = base.manifest
	}
	content := segments.Content(list, sets...)
	if content == segments.Content(live.Segments, live.Sets...) {
		return nil
	}
	withdrawn := map[string]withdrawal{}
	for _, w := range c.Withdrawn {
		withdrawn[w.Content] = w
	}
	if w, ok := withdrawn[content]; ok {
		return []*WithdrawnError{{Withdrawal: w}}
	}
	for _, p := range differing(slices.Concat(segmentParts(list), setParts(sets)), partsOf(live)) {
		if w, ok := withdrawn[p.content()]; ok {
			refusal := &WithdrawnError{Withdrawal: w, Part: fmt.Sprintf("%s %q", p.kind, p.name)}
			if p.kind == setKind {
				refusal.Set = p.name
			}
			refusals = append(refusals, refusal)
		}
	}
	return refusals
}

// differing lists the parts that the other has not, or not with the same users.
func differing(list, other []part) []part {
	there := map[part]bool{}
	for _, p := range other {
		there[p] = true
	}
	return slices.DeleteFunc(list, func(p part) bool { return there[p] })
}

// withdrawal is the newest by which a generation was rolled back from, under its name or
// under another one of the same content; nil: it was not. m may be nil.
func (c *controls) withdrawal(generation string, m *segments.Manifest) *withdrawal {
	content := ""
	if m != nil {
		content = segments.Content(m.Segments, m.Sets...)
	}
	for i := len(c.Withdrawn) - 1; i >= 0; i-- {
		if w := &c.Withdrawn[i]; w.Generation == generation || w.Content == content {
			return w
		}
	}
	return nil
}

// lift forgets that what a generation holds was withdrawn, all together or each.
func (c *controls) lift(m *segments.Manifest) {
	lifted := map[string]bool{segments.Content(m.Segments, m.Sets...): true}
	for _, p := range partsOf(m) {
		lifted[p.content()] = true
	}
	c.Withdrawn = slices.DeleteFunc(c.Withdrawn, func(w withdrawal) bool { return lifted[w.Content] })
}

func (c *controls) encode() []byte {
	raw, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("encode controls: %v", err)) // no field can fail
	}
	return append(raw, '\n')
}

// changeControls changes controls.json; change may be called more than once.
func changeControls(ctx context.Context, at objects.Location, change func(*controls)) error {
	for {
		c, tag, err := readControls(ctx, at, "")
		if err != nil {
			return err
		}
		before := c.encode()
		change(c)
		if slices.Equal(before, c.encode()) {
			return nil
		}
		if _, err := swap(ctx, at, segments.ControlsKey, c.encode(), tag); !errors.Is(err, objects.ErrLostRace) {
			return err
		}
	}
}

// mark notes on a generation what the controls say about it.
func (c *controls) mark(l *Listing) {
	if l.Live {
		l.Hold = c.Hold
	}
	if w := c.withdrawal(l.Generation, l.Manifest); w != nil {
		l.WithdrawnAt = &w.At
	}
}
