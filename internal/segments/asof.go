package segments

import (
	"fmt"
	"time"
)

// AsOfFormatVersion is the format version of a manifest with the field "as_of" (time up to which a set reflects API
// calls). Older programs reject a manifest with this version, and keep the generation (published version) that they
// have.
const AsOfFormatVersion = 4

// newestFormatVersion is the highest format version of a manifest that this program reads.
const newestFormatVersion = IDsFormatVersion

// The method "timed" reports whether the manifest entry of the set has a time, so that the manifest needs
// AsOfFormatVersion.
func (s *Set) timed() bool { return !s.AsOf.IsZero() || !s.AmendedAsOf.IsZero() }

// checkAsOf checks the times of a set in a manifest. Each time must be in whole milliseconds of UTC, and not later than
// the creation of the generation (published version).
func (s *Set) checkAsOf(created time.Time) error {
	for _, t := range []struct {
		field string
		at    time.Time
	}{{"as_of", s.AsOf}, {"amended_as_of", s.AmendedAsOf}} {
		switch {
		case t.at.Nanosecond()%int(time.Millisecond) != 0 || t.at.Location() != time.UTC:
			return fmt.Errorf("%s must be a time in UTC with whole milliseconds, got %s",
				t.field, t.at.Format(time.RFC3339Nano))
		case t.at.After(created):
			return fmt.Errorf("%s must not be later than the time in 'created_at', got %s",
				t.field, t.at.Format(time.RFC3339Nano))
		}
	}
	return nil
}

// AsOf returns the time up to which the published users of a set reflect every change of the set by API calls. If the
// generation (published version) lacks the set or the time is unknown, AsOf returns the zero time. The method
// Refresher.AsOf instead returns the last time at which a build found the same users in its input.
func (s *Snapshot) AsOf(set string) time.Time { return s.manifest.AsOf(set) }

// AsOf works like Snapshot.AsOf, but needs only the manifest, and no bitmaps.
func (m *Manifest) AsOf(set string) time.Time {
	if is := m.set(set); is != nil {
		return is.AsOf
	}
	return time.Time{}
}
