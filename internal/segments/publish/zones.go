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
