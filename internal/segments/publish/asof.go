package publish

import (
	"bytes"
	"fmt"
	"time"

	"capper/internal/segments"
)

// asOfStep is the smallest increase of a set's as_of (time up to which the set reflects all changes) that a build
// publishes for unchanged users. If a program writes input files with equal content again after a short time, a build
// therefore publishes nothing. If the operator stated the as_of of a set, a build publishes every increase of the
// as_of.
const asOfStep = time.Hour

// asOfLayouts lists the formats in which an operator may state the as_of of a set (time up to which the set reflects
// API calls): RFC 3339, with or without seconds.
var asOfLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00"}

// ParseAsOf parses the as_of that an operator states for a set: the time up to which the set's file reflects all
// changes by API calls. The as_of must not be later than the argument "now".
func ParseAsOf(text string, now time.Time) (time.Time, error) {
	for _, layout := range asOfLayouts {
		at, err := time.Parse(layout, text)
		switch {
		case err != nil:
		case at.After(now):
			return time.Time{}, fmt.Errorf("%q: must not be in the future: the time is now %s", text,
				now.UTC().Format(time.RFC3339))
		case at.Year() < 1970:
			return time.Time{}, fmt.Errorf("%q: must not be before 1970", text)
		default:
			return at.UTC().Truncate(time.Millisecond), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q: must be a time with a zone such as 2026-11-23T02:00Z", text)
}

// The method "joined" returns the union of two versions of a set. The union has the earlier as_of (time up to which a
// set reflects all changes), because both versions reflect the changes up to this time. If one version already has all
// users of the other version, the as_of of the union is at least the as_of of that version.
func (s *Set) joined(other *Set) Set {
	both := *s
	both.Bitmap = union(s.Bitmap, other.Bitmap)
	both.AsOf, both.AmendedAsOf = earliest(s.AsOf, other.AsOf), latest(s.AmendedAsOf, other.AmendedAsOf)
	for _, one := range []*Set{s, other} {
		if bytes.Equal(one.Bitmap.Bytes(), both.Bitmap.Bytes()) {
			both.AsOf = latest(both.AsOf, one.AsOf)
		}
	}
	return both
}

// The function "earliest" returns the earlier of two times. If one time is zero (unknown), the function "earliest"
// returns zero.
func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// keepLaterAsOf changes the as_of (time up to which a set reflects all changes) of sets with the same users as the live
// set. If a set has the same users as the live set, it gets the later of the two as_of times, because both sets reflect
// the same changes. In a forced publish, an as_of that the operator stated takes precedence, so that the operator can
// correct a live as_of that is too late.
func (c *Candidate) keepLaterAsOf(is, live *segments.Manifest, forced bool) {
	if live == nil {
		return
	}
	was := map[string]*segments.Set{}
	for i := range live.Sets {
		was[live.Sets[i].Name] = &live.Sets[i]
	}
	for i := range is.Sets {
		set := &is.Sets[i]
		own := c.set(set.Name)
		if forced && own != nil && own.AsOfGiven {
			continue
		}
		if old := was[set.Name]; old != nil && live.Users(&old.Segment) == is.Users(&set.Segment) {
			set.AsOf = latest(set.AsOf, old.AsOf)
		}
	}
}

// otherAsOf reports whether a changed as_of (time up to which a set reflects all changes) is a reason to publish a
// candidate (built but unpublished generation) with unchanged users. When a later as_of is published, services can
// delete the older changes that API calls made to the set. A later as_of from an amend (publish of some sets) and an
// earlier as_of in a forced publish are also reasons to publish. The argument "live" of otherAsOf contains the live
// versions of the sets, in the order of the argument "sets".
func (c *Candidate) otherAsOf(sets, live []segments.Set) bool {
	for i := range sets {
		if sets[i].AsOf.Before(live[i].AsOf) {
			return true
		}
		d := max(sets[i].AsOf.Sub(live[i].AsOf), sets[i].AmendedAsOf.Sub(live[i].AmendedAsOf))
		if d <= 0 {
			continue
		}
		if own := c.set(sets[i].Name); d >= asOfStep || own != nil && own.AsOfGiven {
			return true
		}
	}
	return false
}

// capAsOf replaces every as_of after the creation time of the generation (published version) by the creation time,
// because a set cannot reflect later changes.
func capAsOf(sets []segments.Set, created time.Time) {
	for i := range sets {
		for _, at := range []*time.Time{&sets[i].AsOf, &sets[i].AmendedAsOf} {
			if at.After(created) {
				*at = created
			}
		}
	}
}
