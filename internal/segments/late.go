package segments

import (
	"context"
	"time"

	"capper/internal/capping"
)

// lateInterval is the time between two checks for late API calls: calls that reached the store after the Refresher's
// last comparison.
const lateInterval = time.Second

// lateCalls detects API calls that added users to sets but reached the store after the Refresher had checked the
// generation (published version) in use. API calls reach the store late if somebody replays them, or if an empty Redis
// server gets its data back.
type lateCalls struct {
	known   map[string]uint64 // by set: number of added users whom the generation lacked at its first use; under mu
	changes uint64            // the result of RefresherConfig.Changes at the last check
	next    time.Time         // no check before this time, because a check of long lists takes long
}

// countOverruled stores the number of users whom API calls added to sets, but whom the generation (published version)
// that comes into use lacks.
func (r *Refresher) countOverruled(now *Snapshot) {
	var known map[string]uint64
	if r.cfg.Overruled != nil {
		known = now.overrules(r.cfg.Overruled)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.late.known = known
}

// watchCalls calls Reconsider if the generation (published version) in use now lacks many more users whom API calls
// added than at its first use.
func (r *Refresher) watchCalls(ctx context.Context) {
	now, began := r.Current(), time.Now()
	if now == nil || r.cfg.Overruled == nil || r.cfg.Changes == nil || began.Before(r.late.next) {
		return
	}
	changes := r.cfg.Changes()
	if r.late.changes == changes {
		return
	}
	r.late.changes = changes
	if r.late.arrived(now.overrules(r.cfg.Overruled)) {
		ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
		defer cancel()
		if err := r.Reconsider(ctx); err != nil {
			r.cfg.Logger.Error("segments: an earlier generation cannot be used", "error", err)
			r.late.changes = 0 // check again
		}
	}
	r.late.next = time.Now().Add(50 * time.Since(began))
}

// The method "arrived" reports whether the generation (published version) in use now lacks many more users whom API
// calls added than at its first use.
func (l *lateCalls) arrived(overruled map[string]uint64) bool {
	for set, n := range overruled {
		if n > l.known[set]+mayOverrule {
			return true
		}
	}
	return false
}

// The method "overrules" counts, for each set, the users whom API calls added, but whom the set lacks. The method
// "overrules" ignores API calls after the set's as_of (time up to which the set reflects API calls).
func (s *Snapshot) overrules(overruled func(set string, before, next time.Time) []capping.UserID) map[string]uint64 {
	found, g := map[string]uint64{}, s.setsOnly()
	for i := range s.manifest.Sets {
		set := &s.manifest.Sets[i]
		if users := overruled(set.Name, time.Time{}, set.AsOf); len(users) > 0 {
			found[set.Name] = g.lacking(set.Name, users)
		}
	}
	return found
}

// setsOnly returns the snapshot as a Generation with the bitmaps of the sets, but without bitmaps of the segments.
func (s *Snapshot) setsOnly() *Generation {
	g := &Generation{Manifest: &s.manifest, Scheme: s.scheme, Dictionary: s.dictionary, Back: s.back}
	for i := range s.manifest.Sets {
		g.Sets = append(g.Sets, s.sets[s.manifest.Sets[i].Name])
	}
	return g
}
