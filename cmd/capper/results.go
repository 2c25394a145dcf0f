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
	waves                          map[time.Time]*wave        // by the hour in which they become eligible
	summary                        client.Summary
	generation, configVersion      string
	again                          bool // what is added was requested before
}

func newResults() *results {
	return &results{
		allowed: roaring.New(), replayed: roaring.New(), unavailable: roaring.New(),
		denied: map[string]*roaring.Bitmap{}, waves: map[time.Time]*wave{},
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
	r.summary.Add(&batch.Summary)
	r.generation, r.configVersion = batch.Generation, batch.ConfigVersion
}

// wave is the denied users of one hour.
type wave struct {
	readyAt time.Time // from which all of them may be asked for again
	users   *roaring.Bitmap
}

func (r *results) addWave(of client.Wave) {
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

// waveReport is what --json and waves.json tell of a wave.
type waveReport struct {
	From    time.Time `json:"from"`
	ReadyAt time.Time `json:"ready_at"`
	Users   uint64    `json:"users"`
	File    string    `json:"file"` // in the directory
}

func (r *results) waveReports(extension string) []waveReport {
	list := []waveReport{}
	for from, w := range r.waves {
		list = append(list, waveReport{from, w.readyAt, w.users.GetCardinality(), from.Format(waveName) + extension})
	}
	slices.SortFunc(list, func(a, b waveReport) int { return a.From.Compare(b.From) })
	return list
}

// waveName is the name of a wave's file: its hour.
const waveName = "2006-01-02T15Z"

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
