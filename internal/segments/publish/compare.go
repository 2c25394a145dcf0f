package publish

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"capper/internal/bitmap"
	"capper/internal/parallel"
	"capper/internal/segments"
)

// Change describes the difference of one segment or set between two generations (published versions).
type Change struct {
	// One of the fields Segment and Set contains the name; the other is empty.
	Segment string `json:"segment,omitempty"`
	Set     string `json:"set,omitempty"`
	// State is one of the constants Same, changed, appears, Vanishes, empties and fills.
	State   string `json:"state"`
	Before  uint64 `json:"before"`
	After   uint64 `json:"after"`
	Added   uint64 `json:"added"`   // users who joined
	Removed uint64 `json:"removed"` // users who left
	// Left contains the lowest ids of users who left a set.
	Left []uint32 `json:"left,omitempty"`
	// If ids are not dense (32-bit numbers), LeftTexts contains the ids of users who left a set, and Left is empty.
	LeftTexts []string `json:"left_texts,omitempty"`
	// MovedFrom counts the added users by their earlier segment, in the earlier order of precedence. Added users who
	// are not in MovedFrom were in no segment.
	MovedFrom []moved `json:"moved_from,omitempty"`
	// Percent is the number of added and removed users per 100 users before. If there were no users before, Percent is
	// 0.
	Percent float64 `json:"percent"`
}

// LeftText returns the ids of some users who left the set or segment, separated by commas.
func (c *Change) LeftText() string { return textOf(c.Left, c.LeftTexts) }

// Name returns the name of the segment or set.
func (c *Change) Name() string { return cmp.Or(c.Segment, c.Set) }

// The method What returns the kind and the name of the changed segment or set, for example: segment "new".
func (c *Change) What() string {
	if c.Set != "" {
		return fmt.Sprintf("set %q", c.Set)
	}
	return fmt.Sprintf("segment %q", c.Segment)
}

// The method Words returns the change in the form of an operator's approval, such as "-57% +3%". If no user joins or
// leaves, the method Words returns "".
func (c *Change) Words() string {
	var terms []string
	for _, t := range []struct {
		sign  string
		users uint64
	}{{"-", c.Removed}, {"+", c.Added}} {
		if t.users > 0 {
			terms = append(terms, t.sign+percentText(t.users, c.Before))
		}
	}
	return strings.Join(terms, " ")
}

// percentText formats the number of users as a percentage of the whole, with enough digits to distinguish the
// percentage from 0. If the percentage would need more than two decimal places, percentText returns the number of users
// instead.
func percentText(users, whole uint64) string {
	percent := percent(users, whole)
	for digits := range 3 {
		if percent >= math.Pow(10, -float64(digits)) {
			return segments.FormatPercent(percent, digits) + "%"
		}
	}
	return strconv.FormatUint(users, 10)
}

// The struct "moved" counts the users who moved from one other segment to the segment of a Change.
type moved struct {
	From  string `json:"from"`
	Users uint64 `json:"users"`
}

// The constants Same to fills are the states of a Change.
const (
	Same     = "same"
	changed  = "changed"
	appears  = "appears"
	Vanishes = "vanishes" // the new generation lacks the segment
	empties  = "empties"  // the new segment has no user
	fills    = "fills"    // the old segment had no user
)

// Compare returns the change of every segment from the generation "before" to the candidate (built but unpublished
// generation). The segments of the candidate come first, in their order, and vanished segments come last. Compare uses
// all CPU cores.
func (c *Candidate) Compare(before *segments.Generation) []Change {
	old := map[string]int{}
	for i, s := range before.Manifest.Segments {
		old[s.Name] = i
	}
	n := len(before.Bitmaps)
	shared := bitmap.Shared(c.Bitmaps, before.Bitmaps)
	var changes []Change
	for i, name := range c.Names {
		change := Change{Segment: name, State: appears, After: c.Bitmaps[i].Cardinality(),
			Added: c.Bitmaps[i].Cardinality()}
		for j, s := range before.Manifest.Segments {
			both := shared[i*n+j]
			if s.Name == name {
				change.compareWith(before.Bitmaps[j].Cardinality(), both)
			} else if both > 0 {
				change.MovedFrom = append(change.MovedFrom, moved{From: s.Name, Users: both})
			}
		}
		changes = append(changes, change)
		delete(old, name)
	}
	for i, s := range before.Manifest.Segments {
		if _, vanishes := old[s.Name]; vanishes {
			card := before.Bitmaps[i].Cardinality()
			changes = append(changes, Change{Segment: s.Name, State: Vanishes, Before: card, Removed: card,
				Percent: percent(card, card)})
		}
	}
	return changes
}

// compareWith sets the fields of the change c, for a segment or set that existed before. The argument "before" of
// compareWith is the earlier number of users, and the argument "both" is the number of users who stayed.
func (c *Change) compareWith(before, both uint64) {
	c.Before, c.Added, c.Removed = before, c.After-both, before-both
	c.Percent = percent(c.Added+c.Removed, before)
	switch {
	case c.After == 0 && before > 0:
		c.State = empties
	case before == 0 && c.After > 0:
		c.State = fills
	case c.Added+c.Removed == 0:
		c.State = Same
	default:
		c.State = changed
	}
}

// The function "percent" returns its argument "part" as a percentage of its argument "whole", or 0 if "whole" is 0.
func percent(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

// Drift returns the changes of the segments that both the candidate (built but unpublished generation) and an earlier
// generation (published version) have, in the order of the candidate. Drift skips a segment that one of the two
// generations lacks, because the guard already judged the publish that added or removed this segment. Drift uses all
// CPU cores.
func (c *Candidate) Drift(before *segments.Generation) []Change {
	changes := make([]Change, len(c.Names))
	parallel.OnAllCores(len(c.Names), func(i int) {
		name := c.Names[i]
		j := slices.IndexFunc(before.Manifest.Segments, func(s segments.Segment) bool { return s.Name == name })
		if j < 0 {
			return
		}
		both, _ := bitmap.Common(c.Bitmaps[i], before.Bitmaps[j], 0)
		changes[i] = Change{Segment: name, After: c.Bitmaps[i].Cardinality()}
		changes[i].compareWith(before.Bitmaps[j].Cardinality(), both)
	})
	return slices.DeleteFunc(changes, func(c Change) bool { return c.Segment == "" })
}

// leftSamples is the maximum number of users in Change.Left (a sample of the users who left).
const leftSamples = 5

// CompareSets returns the change of every set from the generation "before" to the candidate (built but unpublished
// generation). The sets of the candidate come first, in their order, and vanished sets come last. CompareSets uses all
// CPU cores.
func (c *Candidate) CompareSets(before *segments.Generation) []Change {
	was := map[string]*bitmap.Bitmap{}
	for i, s := range before.Manifest.Sets {
		was[s.Name] = before.Sets[i]
	}
	changes := make([]Change, len(c.Sets), len(c.Sets)+len(was))
	parallel.OnAllCores(len(c.Sets), func(i int) { changes[i] = c.Sets[i].compare(was[c.Sets[i].Name]) })
	for _, s := range c.Sets {
		delete(was, s.Name)
	}
	for _, s := range before.Manifest.Sets {
		if old := was[s.Name]; old != nil {
			changes = append(changes, Change{Set: s.Name, State: Vanishes, Before: old.Cardinality(),
				Removed: old.Cardinality(),
				Left:    old.LowestWithout(nil, leftSamples), Percent: percent(old.Cardinality(), old.Cardinality())})
		}
	}
	if c.Dictionary != nil {
		for i := range changes {
			changes[i].LeftTexts, changes[i].Left = c.texts(changes[i].Left, before), nil
		}
	}
	return changes
}

// DriftSets returns the changes of the sets that both the candidate (built but unpublished generation) and an earlier
// generation have; see Drift.
func (c *Candidate) DriftSets(before *segments.Generation) []Change {
	return slices.DeleteFunc(c.CompareSets(before), func(c Change) bool {
		return c.State == appears ||
			c.State == Vanishes
	})
}

// The method "compare" returns the change of the set from an earlier bitmap. If the earlier bitmap is nil, the set is
// new.
func (s *Set) compare(was *bitmap.Bitmap) Change {
	change := Change{Set: s.Name, State: appears, After: s.Bitmap.Cardinality(), Added: s.Bitmap.Cardinality()}
	switch {
	case was == nil:
	case bytes.Equal(was.Bytes(), s.Bitmap.Bytes()): // the usual case: nothing has changed
		change.compareWith(was.Cardinality(), was.Cardinality())
	default:
		both, _ := bitmap.Common(s.Bitmap, was, 0)
		if change.compareWith(was.Cardinality(), both); change.Removed > 0 {
			change.Left = was.LowestWithout(s.Bitmap, leftSamples)
		}
	}
	return change
}

// The type NoSegment counts the users who left all segments, and the users who joined a segment after being in none.
// For users in no segment, the default limits apply.
type NoSegment struct {
	Before uint64 `json:"before"` // users in any segment before
	After  uint64 `json:"after"`  // users in any segment now
	Fall   uint64 `json:"fall"`   // in a segment before, in none now
	Rise   uint64 `json:"rise"`   // in none before, in a segment now
	// Percent is the number of users who leave all segments, per 100 users in segments before. If no users were in
	// segments before, Percent is 0.
	Percent float64 `json:"percent"`
}

// The method NoSegment compares the users in any segment of the candidate (built but unpublished generation) with the
// users in any segment of the generation "before". NoSegment reads each bitmap once and uses all CPU cores.
func (c *Candidate) NoSegment(before *segments.Generation) NoSegment {
	was, is, both := bitmap.Unions(before.Bitmaps, c.Bitmaps)
	return NoSegment{Before: was, After: is, Fall: was - both, Rise: is - both, Percent: percent(was-both, was)}
}
