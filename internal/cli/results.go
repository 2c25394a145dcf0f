package cli

import (
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client"
	"capper/client/api"
)

// Results collects the decisions for an audience. Every decided user is either allowed, denied or unavailable.
type Results struct {
	// IDs is the list whose positions the bitmaps hold; nil: the bitmaps hold dense ids.
	IDs                            *IDs
	Allowed, Replayed, Unavailable *roaring.Bitmap
	Denied                         map[string]*roaring.Bitmap // by limit
	Summary                        api.Summary
	Generation, ConfigVersion      string // values of the last answer; "": no answer yet

	waves map[time.Time]*wave // by the hour in which the users become eligible
	again bool                // set if the added users were requested before
}

// NewResults returns results without any users.
func NewResults() *Results {
	return &Results{
		Allowed: roaring.New(), Replayed: roaring.New(), Unavailable: roaring.New(),
		Denied: map[string]*roaring.Bitmap{}, waves: map[time.Time]*wave{},
	}
}

// Add adds the result of one batch.
func (r *Results) Add(batch *client.FilterResult) {
	r.Allowed.Or(batch.AllowedBitmap)
	r.Replayed.Or(batch.ReplayedBitmap)
	r.Unavailable.Or(batch.UnavailableBitmap)
	for limit, users := range batch.DeniedBitmaps {
		merge(r.Denied, limit, users)
	}
	for _, w := range batch.Waves {
		r.addWave(w)
	}
	if r.again {
		batch.Summary.Requested = 0
		for name, segment := range batch.Summary.Segments {
			segment.Requested = 0
			batch.Summary.Segments[name] = segment
		}
	}
	r.Summary.Add(&batch.Summary)
	r.Generation, r.ConfigVersion = batch.Generation, batch.ConfigVersion
}

// wave is the denied users who may be asked for again in the same hour.
type wave struct {
	readyAt time.Time // time from which all users of the wave may be asked for again
	users   *roaring.Bitmap
}

func (r *Results) addWave(of client.Wave) {
	from := of.From.UTC()
	if r.waves[from] == nil {
		r.waves[from] = &wave{users: roaring.New()}
	}
	w := r.waves[from]
	w.users.Or(of.Bitmap)
	if of.ReadyAt.After(w.readyAt) {
		w.readyAt = of.ReadyAt
	}
}

// Retry removes the unavailable users from the results and returns them, for a retry.
func (r *Results) Retry() *roaring.Bitmap {
	users := r.Unavailable
	r.Unavailable, r.Summary.Unavailable, r.again = roaring.New(), 0, true
	return users
}

// Answered reports whether the service has answered any call.
func (r *Results) Answered() bool { return r.Generation != "" }

// Missing returns those of the users for whom there is no answer at all, not even unavailable.
func (r *Results) Missing(users *roaring.Bitmap) *roaring.Bitmap {
	known := roaring.FastOr(r.Allowed, r.Unavailable)
	for _, denied := range r.Denied {
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
