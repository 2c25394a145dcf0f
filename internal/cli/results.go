package cli

import (
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client"
	"capper/client/api"
)

// The type Results collects the decisions about the users of an audience from the responses of the service. Each user
// in the Results is allowed, denied or unavailable (without a decision).
type Results struct {
	// IDs is a list of user ids. The bitmaps contain positions in this list. If IDs is nil, the bitmaps contain dense
	// ids (32-bit numbers).
	IDs                            *IDs
	Allowed, Replayed, Unavailable *roaring.Bitmap
	Denied                         map[string]*roaring.Bitmap // by limit
	Summary                        api.Summary
	Generation, ConfigVersion      string // from the last response; "": no response yet

	waves map[time.Time]*wave // by the hour in which the denials of the users end
	again bool                // the next added users have already been requested
}

// NewResults returns Results that do not contain any users yet.
func NewResults() *Results {
	return &Results{
		Allowed: roaring.New(), Replayed: roaring.New(), Unavailable: roaring.New(),
		Denied: map[string]*roaring.Bitmap{}, waves: map[time.Time]*wave{},
	}
}

// The method Add adds the decisions in one response of the service to the Results.
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

// A wave holds the denied users whose denials end in the same hour.
type wave struct {
	readyAt time.Time // time from which all users of the wave may be retried
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

// The method Retry removes the unavailable users (users without a decision) from the results, and returns these users
// for a retry.
func (r *Results) Retry() *roaring.Bitmap {
	users := r.Unavailable
	r.Unavailable, r.Summary.Unavailable, r.again = roaring.New(), 0, true
	return users
}

// The method Answered reports whether the service has returned at least one response.
func (r *Results) Answered() bool { return r.Generation != "" }

// The method Missing returns the given users who are in no response. Unavailable users (without a decision) are in a
// response, so they are not missing.
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
