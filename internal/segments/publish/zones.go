package publish

import (
	"strings"

	"capper/internal/bitmap"
	"capper/internal/segments"
)

// FurtherZones is how many users are in a further set of a time zone beside the first,
// which is the one that counts; who is in three counts twice.
func (c *Candidate) FurtherZones() (users uint64) {
	var zones []*bitmap.Bitmap
	for _, s := range c.Sets {
		if strings.HasPrefix(s.Name, segments.ZonePrefix) {
			zones = append(zones, s.Bitmap)
			users += s.Bitmap.Cardinality()
		}
	}
	all, _, _ := bitmap.Unions(zones, nil)
	return users - all
}

// LostZones says why services that need the time zones of users refuse the candidate; nil
// where they do not.
func (c *Candidate) LostZones(before *segments.Generation) *segments.LossError {
	is := &segments.Generation{Manifest: &segments.Manifest{Accepted: c.Accepted}}
	for _, s := range c.Sets {
		if strings.HasPrefix(s.Name, segments.ZonePrefix) {
			is.Manifest.Sets = append(is.Manifest.Sets, segments.Set{Segment: segments.Describe(s.Name, s.Bitmap)})
			is.Sets = append(is.Sets, s.Bitmap)
		}
	}
	return segments.JudgeZones(before, is)
}
