package client

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// settle puts into r what a later call decided of r's unavailable users.
func (r *FilterResult) settle(again *FilterResult) {
	r.Allowed = append(r.Allowed, again.Allowed...)
	r.Replayed = append(r.Replayed, again.Replayed...)
	r.Denied = append(r.Denied, again.Denied...)
	r.Unavailable = again.Unavailable
	if r.AllowedBitmap != nil {
		r.AllowedBitmap.Or(again.AllowedBitmap)
		r.ReplayedBitmap.Or(again.ReplayedBitmap)
		r.UnavailableBitmap = again.UnavailableBitmap
		for limit, users := range again.DeniedBitmaps {
			r.DeniedBitmaps[limit] = union(r.DeniedBitmaps[limit], users)
		}
	}
	for _, wave := range again.Waves {
		r.addWave(wave)
	}
	settleSummary(&r.Summary, &again.Summary)
	r.Generation, r.ConfigVersion = again.Generation, again.ConfigVersion
}

func union(a, b *roaring.Bitmap) *roaring.Bitmap {
	if a == nil {
		return b
	}
	a.Or(b)
	return a
}

func (r *FilterResult) addWave(wave Wave) {
	i, found := slices.BinarySearchFunc(r.Waves, wave, func(a, b Wave) int { return a.From.Compare(b.From) })
	if !found {
		r.Waves = slices.Insert(r.Waves, i, wave)
		return
	}
	same := &r.Waves[i]
	same.Users = append(same.Users, wave.Users...)
	if wave.Bitmap != nil {
		same.Bitmap = union(same.Bitmap, wave.Bitmap)
	}
	if wave.ReadyAt.After(same.ReadyAt) {
		same.ReadyAt = wave.ReadyAt
	}
}

// settleSummary adds what a later call decided of the unavailable users: they
// were counted as requested before.
func settleSummary(s, again *Summary) {
	s.Allowed += again.Allowed
	s.Replayed += again.Replayed
	s.Unavailable = again.Unavailable
	for limit, users := range again.Denied {
		s.Denied[limit] += users
	}
	for segment, counts := range again.Segments {
		row := s.Segments[segment]
		row.Allowed += counts.Allowed
		s.Segments[segment] = row
	}
}
