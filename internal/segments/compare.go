package segments

import (
	"fmt"
	"math"
)

// Change is what becomes of one segment from one generation to another.
type Change struct {
	Segment string `json:"segment"`
	// State is one of the constants below.
	State   string `json:"state"`
	Before  uint64 `json:"before"`
	After   uint64 `json:"after"`
	Added   uint64 `json:"added"`   // in it now, not before
	Removed uint64 `json:"removed"` // in it before, not now
	// MovedFrom says how many of the added came from another segment, in order
	// of the precedence before; the rest were in no segment.
	MovedFrom []Moved `json:"moved_from,omitempty"`
	// Percent is added and removed users per 100 users before. 0 when there were none.
	Percent float64 `json:"percent"`
}

// Moved is users who come from another segment.
type Moved struct {
	From  string `json:"from"`
	Users uint64 `json:"users"`
}

// States of a Change.
const (
	Same     = "same"
	Changed  = "changed"
	Appears  = "appears"
	Vanishes = "vanishes" // the segment is not there any more
	Empties  = "empties"  // it is there, without users
)

// Compare says what changes from before to c for every segment of either: those
// of c in their order, then those that vanish. It uses all cores.
func (c *Candidate) Compare(before *Generation) []Change {
	old := map[string]int{}
	for i, s := range before.Manifest.Segments {
		old[s.Name] = i
	}
	n := len(before.Bitmaps)
	shared := make([]uint64, len(c.Names)*n) // users in new segment i and old segment j
	inParallel(len(shared), func(k int) { shared[k], _ = common(c.Bitmaps[k/n], before.Bitmaps[k%n]) })

	var changes []Change
	for i, name := range c.Names {
		change := Change{Segment: name, State: Appears, After: c.Bitmaps[i].card, Added: c.Bitmaps[i].card}
		for j, s := range before.Manifest.Segments {
			both := shared[i*n+j]
			if s.Name == name {
				change.compareWith(before.Bitmaps[j].card, both)
			} else if both > 0 {
				change.MovedFrom = append(change.MovedFrom, Moved{From: s.Name, Users: both})
			}
		}
		changes = append(changes, change)
		delete(old, name)
	}
	for i, s := range before.Manifest.Segments {
		if _, vanishes := old[s.Name]; vanishes {
			card := before.Bitmaps[i].card
			changes = append(changes, Change{Segment: s.Name, State: Vanishes, Before: card, Removed: card, Percent: percent(card, card)})
		}
	}
	return changes
}

// compareWith completes the change of a segment that was there before.
func (c *Change) compareWith(before, both uint64) {
	c.Before, c.Added, c.Removed = before, c.After-both, before-both
	c.Percent = percent(c.Added+c.Removed, before)
	switch {
	case c.After == 0 && before > 0:
		c.State = Empties
	case c.Added+c.Removed == 0:
		c.State = Same
	default:
		c.State = Changed
	}
}

func percent(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

// Refusals says why the changes must not go live without somebody's word for
// it: a segment vanishes or empties, or more than maxPercent of it come or go.
func Refusals(changes []Change, maxPercent float64) []string {
	var list []string
	for _, c := range changes {
		switch {
		case c.State == Vanishes, c.State == Empties:
			list = append(list, fmt.Sprintf("segment %q %s (it has %d users now)", c.Segment, c.State, c.Before))
		case c.Percent > maxPercent:
			list = append(list, fmt.Sprintf("segment %q changes by %s %%, at most %s %% is allowed: %d users come, %d go, of %d",
				c.Segment, round(c.Percent), round(maxPercent), c.Added, c.Removed, c.Before))
		}
	}
	return list
}

// round shows a percentage with one digit, upwards, so that 20.01 is never shown as 20.
func round(percent float64) string {
	return fmt.Sprintf("%.4g", math.Ceil(percent*10)/10)
}
