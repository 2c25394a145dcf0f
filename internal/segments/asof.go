package segments

import (
	"fmt"
	"time"
)

// AsOfFormatVersion is the format version of a manifest that has the field "as_of" for a set. Older programs reject a
// manifest with the field "as_of", and keep the generation of segments that they have.
const AsOfFormatVersion = 4

// newestFormatVersion is the highest format version of a manifest that this program reads.
const newestFormatVersion = IDsFormatVersion

// timed reports whether the manifest entry of the set has a time, which only readers of AsOfFormatVersion know.
func (s *Set) timed() bool { return !s.AsOf.IsZero() || !s.AmendedAsOf.IsZero() }

// checkAsOf checks the times of a set in a manifest: each must be in whole milliseconds of UTC, and not later than the
// generation.
func (s *Set) checkAsOf(created time.Time) error {
	for _, t := range []struct {
		field string
		at    time.Time
	}{{"as_of", s.AsOf}, {"amended_as_of", s.AmendedAsOf}} {
		switch {
		case t.at.Nanosecond()%int(time.Millisecond) != 0 || t.at.Location() != time.UTC:
			return fmt.Errorf("%s %s: must be a time in UTC with whole milliseconds",
				t.field, t.at.Format(time.RFC3339Nano))
		case t.at.After(created):
			return fmt.Errorf("%s %s: must not be later than the time in 'created_at'",
				t.field, t.at.Format(time.RFC3339Nano))
		}
	}
	return nil
}

// AsOf returns the time up to which the published users of a set reflect every change of the set by API calls. AsOf
// returns the zero time if the generation lacks the set or does not know the time. In contrast, Refresher.AsOf returns
// when a build last found the same users in its input.
func (s *Snapshot) AsOf(set string) time.Time { return s.manifest.AsOf(set) }

// AsOf works like Snapshot.AsOf, but needs only the manifest and not the bitmaps of the generation.
func (m *Manifest) AsOf(set string) time.Time {
	if is := m.set(set); is != nil {
		return is.AsOf
	}
	return time.Time{}
}
