package main

import (
	"cmp"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client"
)

// results gathers what a blast decided. Every user is in exactly one of
// allowed, the denied and unavailable.
type results struct {
	allowed, replayed, unavailable *roaring.Bitmap
	denied                         map[string]*roaring.Bitmap // by limit
	waves                          map[time.Time]*roaring.Bitmap
	summary                        client.Summary
	generation, configVersion      string
	again                          bool // what is added was requested before
}

func newResults() *results {
	return &results{
		allowed: roaring.New(), replayed: roaring.New(), unavailable: roaring.New(),
		denied: map[string]*roaring.Bitmap{}, waves: map[time.Time]*roaring.Bitmap{},
	}
}

// add takes the result of one batch.
func (r *results) add(batch *client.FilterResult) {
	r.allowed.Or(batch.AllowedBitmap)
	r.replayed.Or(batch.ReplayedBitmap)
	r.unavailable.Or(batch.UnavailableBitmap)
	for limit, users := range batch.DeniedBitmaps {
		merge(r.denied, limit, users)
	}
	for _, wave := range batch.Waves {
		merge(r.waves, wave.From, wave.Bitmap)
	}
	if r.again {
		batch.Summary.Requested = 0
		for name, segment := range batch.Summary.Segments {
			segment.Requested = 0
			batch.Summary.Segments[name] = segment
		}
	}
	r.summary.Add(&batch.Summary)
	r.generation, r.configVersion = batch.Generation, batch.ConfigVersion
}

// retry takes out the unavailable users, to be asked for again.
func (r *results) retry() *roaring.Bitmap {
	users := r.unavailable
	r.unavailable, r.summary.Unavailable, r.again = roaring.New(), 0, true
	return users
}

// answered reports whether the service has answered at all.
func (r *results) answered() bool { return r.generation != "" }

// missing is those of the users of whom nothing is known, not even that they
// are unavailable.
func (r *results) missing(users *roaring.Bitmap) *roaring.Bitmap {
	known := roaring.FastOr(r.allowed, r.unavailable)
	for _, denied := range r.denied {
		known.Or(denied)
	}
	return roaring.AndNot(users, known)
}

func merge[K comparable](into map[K]*roaring.Bitmap, key K, users *roaring.Bitmap) {
	if into[key] == nil {
		into[key] = roaring.New()
	}
	into[key].Or(users)
}

// sortedCounts lists the counts by descending number, then by name.
func sortedCounts(counts map[string]int) (names []string) {
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	return names
}
