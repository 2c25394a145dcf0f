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

// maxWithdrawn is the maximum number of entries in the list of rolled-back content in controls.json. An entry takes
// about 200 bytes. If the list is full, the method "withdraw" drops the oldest entries. The list has space for 15
// rollbacks of generations (published versions) with MaxSegments segments. If a rollback replaces MaxSets different
// sets, the list keeps only the last of these sets.
const maxWithdrawn = 4000

// A Hold stops all publishing at a location until an operator releases the Hold. During a hold, rollbacks remain
// possible.
type Hold struct {
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
}

// The struct "withdrawal" records content that a rollback replaced: a whole generation (published version), or one
// segment or set that differed from its replacement. Content that a rollback replaced must not go live again without
// approval, not even in a generation with another name.
type withdrawal struct {
	Generation string `json:"generation"`
	// Content is a hash of a whole generation (Manifest.Content), or of one segment or set (part.content). The two
	// kinds of hashes share one field, so that an older tool without hashes of segments and sets still reads and keeps
	// the document.
	Content string    `json:"content"`
	At      time.Time `json:"at"`
}

// The struct "controls" is the content of the object controls.json: a hold on publishing, and the list of rolled-back
// content.
type controls struct {
	FormatVersion int          `json:"format_version"`
	Hold          *Hold        `json:"hold,omitempty"`
	Withdrawn     []withdrawal `json:"withdrawn,omitempty"` // in the order of time
}

// HoldError reports that an operator has put publishing on hold.
type HoldError struct{ Hold Hold }

func (e *HoldError) Error() string {
	return fmt.Sprintf("publishing is on hold since %s: %s", e.Hold.Since.Format(time.RFC3339), e.Hold.Reason)
}

// WithdrawnError reports an attempt to publish content that a rollback had replaced.
type WithdrawnError struct {
	Withdrawal withdrawal
	Part       string // the rolled-back segment or set, such as: segment "new"; empty: the whole content
	Set        string // the name of the rolled-back set, if a single set is affected
}

func (e *WithdrawnError) Error() string {
	what := "the content equals that of"
	if e.Part != "" {
		what = e.Part + " has the same users as in"
	}
	return fmt.Sprintf("%s %s, which was rolled back from at %s", what, e.Withdrawal.Generation,
		e.Withdrawal.At.Format(time.RFC3339))
}

// A part is one segment or set of a generation (published version): its kind, its name and a hash of its users.
type part struct{ kind, name, users string }

const setKind = "set"

func segmentParts(m *segments.Manifest) (parts []part) {
	for i := range m.Segments {
		parts = append(parts, part{"segment", m.Segments[i].Name, m.Users(&m.Segments[i])})
	}
	return parts
}

func setParts(m *segments.Manifest) (parts []part) {
	for i := range m.Sets {
		parts = append(parts, part{setKind, m.Sets[i].Name, m.Users(&m.Sets[i].Segment)})
	}
	return parts
}

func partsOf(m *segments.Manifest) []part { return slices.Concat(segmentParts(m), setParts(m)) }

// The method "content" returns a hash of the kind, the name and the users of a segment or set. The hash of one segment
// or set never equals the hash of a whole generation (Manifest.Content), because no segment's name contains a blank.
func (p part) content() string {
	return segments.Sum(fmt.Appendf(nil, "%s %s %s\n", p.kind, p.name, p.users))
}

// ReadControls reads controls.json of a location. If the location has no controls.json, ReadControls returns a controls
// document without a hold and without rolled-back content.
func ReadControls(ctx context.Context, src objects.Source) (*controls, error) {
	c, _, err := readControls(ctx, src, "")
	return c, err
}

// readControls reads controls.json, or returns objects.ErrNotModified if controls.json still has the given tag. If the
// argument "tag" is empty, readControls reads controls.json even if it has not changed.
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

// The method Refusals checks the manifest and each of its segments and sets. Refusals returns an error for content that
// was rolled back, because such content must not go live again without approval. Content that is already live in the
// argument "base" may remain.
func (c *controls) Refusals(is *segments.Manifest, base *LiveState) (refusals []*WithdrawnError) {
	live := &segments.Manifest{}
	if base.manifest != nil {
		live = base.manifest
	}
	content := is.Content()
	if content == live.Content() {
		return nil
	}
	withdrawn := map[string]withdrawal{}
	for _, w := range c.Withdrawn {
		withdrawn[w.Content] = w
	}
	if w, ok := withdrawn[content]; ok {
		return []*WithdrawnError{{Withdrawal: w}}
	}
	for _, p := range differing(partsOf(is), partsOf(live)) {
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

// The function "differing" compares two lists of segments and sets. The result contains the segments and sets that are
// missing in the list "other", or have different users there.
func differing(list, other []part) []part {
	there := map[part]bool{}
	for _, p := range other {
		there[p] = true
	}
	return slices.DeleteFunc(list, func(p part) bool { return there[p] })
}

// The method "withdrawal" returns the record of the newest rollback that replaced the generation (published version),
// or another generation with the same content. If no rollback replaced this content, the result is nil. The argument
// "m" of the method "withdrawal" may be nil.
func (c *controls) withdrawal(generation string, m *segments.Manifest) *withdrawal {
	content := ""
	if m != nil {
		content = m.Content()
	}
	for i := len(c.Withdrawn) - 1; i >= 0; i-- {
		if w := &c.Withdrawn[i]; w.Generation == generation || w.Content == content {
			return w
		}
	}
	return nil
}

// The method "lift" removes the content of the manifest m from the list of rolled-back content: the generation
// (published version), its segments and its sets. After lift, this content may go live again.
func (c *controls) lift(m *segments.Manifest) {
	lifted := map[string]bool{m.Content(): true}
	for _, p := range partsOf(m) {
		lifted[p.content()] = true
	}
	c.Withdrawn = slices.DeleteFunc(c.Withdrawn, func(w withdrawal) bool { return lifted[w.Content] })
}

func (c *controls) encode() []byte {
	raw, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("encode controls: %v", err)) // encoding these fields cannot fail
	}
	return append(raw, '\n')
}

// changeControls reads controls.json, calls the function "change", and writes the result of this function by
// compare-and-swap. If another process has changed controls.json in the meantime, changeControls starts again.
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

// The method "mark" completes the entry of a generation (published version) in a list. For the live generation, "mark"
// adds the hold on publishing. For a generation that a rollback replaced, "mark" adds the time of the rollback.
func (c *controls) mark(l *Listing) {
	if l.Live {
		l.Hold = c.Hold
	}
	if w := c.withdrawal(l.Generation, l.Manifest); w != nil {
		l.WithdrawnAt = &w.At
	}
}
