package publish

import (
	"bytes"
	"fmt"
	"time"

	"capper/internal/segments"
)

// asOfStep is the minimum increase of the as_of of a set with unchanged users for which a build publishes, unless the
// operator stated the time. A build of files that were written again with equal content therefore publishes nothing.
const asOfStep = time.Hour

// asOfLayouts lists the accepted formats of an as_of: RFC 3339, also without seconds.
var asOfLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00"}

// ParseAsOf parses a time that an operator states as the as_of of a set. The time must not be later than now.
func ParseAsOf(text string, now time.Time) (time.Time, error) {
	for _, layout := range asOfLayouts {
		at, err := time.Parse(layout, text)
		switch {
		case err != nil:
		case at.After(now):
			return time.Time{}, fmt.Errorf("%q: must not be in the future: it is %s now", text,
				now.UTC().Format(time.RFC3339))
		case at.Year() < 1970:
			return time.Time{}, fmt.Errorf("%q: must not be before 1970", text)
		default:
			return at.UTC().Truncate(time.Millisecond), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q: must be a time with a zone such as 2026-11-23T02:00Z", text)
}

// joined returns s with the added users of another version of the set. The union has the earlier as_of of the two
// versions, because only the earlier as_of is true for both versions. If one version has all users, the union has the
// as_of of that version.
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

// earliest returns the earlier of two times. An unknown time is zero and therefore the earliest.
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

// keepLaterAsOf gives each set with unchanged users the later of two times: its own as_of, and the as_of of the live
// set, because equal users contain equal changes. A forced publish uses an as_of that the operator stated instead,
// because a forced publish may correct a live as_of that is too late.
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

// otherAsOf reports whether the changed as_of of a set with unchanged users must be published. A later as_of lets
// services delete old changes by API calls. An as_of must also be published if it belongs to a later amend, or if a
// forced publish makes the as_of earlier. The argument live has the sets of the candidate in the order of the
// candidate.
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

// capAsOf lowers every as_of to the creation time of the generation, because a set cannot contain later changes.
func capAsOf(sets []segments.Set, created time.Time) {
	for i := range sets {
		for _, at := range []*time.Time{&sets[i].AsOf, &sets[i].AmendedAsOf} {
			if at.After(created) {
				*at = created
			}
		}
	}
}
