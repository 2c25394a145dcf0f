package guard

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"capper/internal/segments/publish"
)

// judgeSizes says which segments have too few or too many users.
func (b *Bounds) judgeSizes(c *publish.Candidate) (refusals []string) {
	for i, name := range c.Names {
		own, users := b.Of[name], c.Bitmaps[i].Cardinality()
		if own.MinUsers != nil && users < *own.MinUsers {
			refusals = append(refusals, fmt.Sprintf("segment %q has %d users, at least %d are expected (min_users)", name, users, *own.MinUsers))
		}
		if own.MaxUsers != nil && users > *own.MaxUsers {
			refusals = append(refusals, fmt.Sprintf("segment %q has %d users, at most %d are expected (max_users)", name, users, *own.MaxUsers))
		}
	}
	return refusals
}

// judgeChanges says what of the changes since the last publish is beyond the
// bounds: a segment that vanishes, empties, appears or fills, or of which too
// many users come or go; too many users that fall to no segment.
func (b *Bounds) judgeChanges(changes []publish.Change, none publish.NoSegment) (refusals []string) {
	for _, c := range changes {
		allowed := b.maxChange(c.Segment)
		switch {
		case c.State == publish.Vanishes, c.State == publish.Empties:
			refusals = append(refusals, fmt.Sprintf("segment %q %s (it has %d users now)", c.Segment, c.State, c.Before))
		case c.State == publish.Appears && !slices.Contains(b.New, c.Segment):
			refusals = append(refusals, fmt.Sprintf("segment %q is new, with %d users%s: --allow-new %s if it is meant",
				c.Segment, c.After, similar(c.Segment, changes), c.Segment))
		case c.State == publish.Fills && !slices.Contains(b.New, c.Segment):
			refusals = append(refusals, fmt.Sprintf("segment %q fills: it has no users now and would have %d: --allow-new %s if that is meant",
				c.Segment, c.After, c.Segment))
		case c.Percent > allowed:
			refusals = append(refusals, fmt.Sprintf("segment %q changes by %s %%, at most %s %% is allowed: %d users come, %d go, of %d",
				c.Segment, round(c.Percent), round(allowed), c.Added, c.Removed, c.Before))
		}
	}
	return append(refusals, b.judgeFall(none, "")...)
}

// judgeWeek says the same of the drift since the generation of a week ago. What
// appeared or emptied since then has been judged when it did.
func (b *Bounds) judgeWeek(generation string, drift []publish.Change, none publish.NoSegment) (refusals []string) {
	for _, c := range drift {
		if allowed := b.maxWeekChange(c.Segment); c.State == publish.Changed && c.Percent > allowed {
			refusals = append(refusals, fmt.Sprintf("segment %q changes by %s %% since %s, at most %s %% is allowed in a week: %d users come, %d go, of %d",
				c.Segment, round(c.Percent), generation, round(allowed), c.Added, c.Removed, c.Before))
		}
	}
	return append(refusals, b.judgeFall(none, " since "+generation)...)
}

func (b *Bounds) judgeFall(n publish.NoSegment, since string) []string {
	allowed := orElse(b.MaxUnassigned, b.MaxChange)
	if n.Percent <= allowed {
		return nil
	}
	return []string{fmt.Sprintf("%d of %d users fall to no segment%s, and to the default limits: that is %s %%, at most %s %% is allowed",
		n.Fall, n.Before, since, round(n.Percent), round(allowed))}
}

// similar says which live segment has the name in other letters' case.
func similar(name string, changes []publish.Change) string {
	for _, c := range changes {
		if c.Segment != name && c.State != publish.Appears && strings.EqualFold(c.Segment, name) {
			return fmt.Sprintf(" (%q is live, which differs by case only)", c.Segment)
		}
	}
	return ""
}

// round shows a percentage with one digit, upwards, so that 20.01 is never shown as 20.
func round(percent float64) string {
	return fmt.Sprintf("%.4g", math.Ceil(percent*10)/10)
}
