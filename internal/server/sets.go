package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"capper/client/api"
	"capper/internal/audit"
	"capper/internal/capping"
	"capper/internal/live"
	"capper/internal/segments"
	"capper/internal/server/gate"
	"capper/internal/server/wire"
	"capper/internal/trace"
)

// liveStore returns the store of live changes (additions and removals of set members by API calls), or nil if the store
// does not support live changes.
func (s *Server) liveStore() live.Store {
	store, _ := capping.As[live.Store](s.capper.Store())
	return store
}

// liveLists returns this instance's copy of the live changes of sets (by API calls), or nil when the store does not
// support live changes.
func (s *Server) liveLists() *live.Lists {
	if store := s.liveStore(); store != nil {
		return store.Lists()
	}
	return nil
}

// liveSizes returns the number of live changes (by API calls) of each set, according to the copy in the memory of this
// instance.
func (s *Server) liveSizes() []live.Size {
	if lists := s.liveLists(); lists != nil {
		return wire.LiveSizes(s.inUse(), lists)
	}
	return nil
}

// inUse returns the segments generation (published version) in use, or nil when no generation is loaded.
func (s *Server) inUse() *segments.Snapshot {
	snapshot, err := s.finder.Pin("")
	if err != nil {
		return nil
	}
	return snapshot
}

// changeSet serves POST /v1/sets/{set}/members.
func (s *Server) changeSet(c *call) error {
	store, snapshot, err := s.changeable(c)
	if err != nil {
		return err
	}
	body, err := s.bodies.Read(c.w, c.r, c.holder)
	if err != nil {
		return err
	}
	defer body.Close()
	now := s.clock()
	r, err := wire.DecodeSetChange(body.Data, s.decodeBounds(body), now,
		now.Add(s.capper.Store().ClockTolerance()+time.Second))
	if err != nil {
		return err
	}
	body.KeepUsers(r.Bytes())
	p, err := s.enterChange(c, store, r)
	if err != nil {
		return err
	}
	defer p.Close()
	body.Close()
	batch := &live.Batch{Set: c.id, By: clientOf(c), At: r.At, After: wire.BuiltAsOf(snapshot, c.id), Add: r.Add,
		Remove: r.Remove}
	stored, err := s.change(c, store, batch, r)
	if err != nil {
		return err
	}
	return writeJSON(c.w, &api.SetChanged{Set: c.id, At: stored.At.Time(), Added: len(r.Add), Removed: len(r.Remove),
		Superseded: superseded(store.Lists(), batch, stored)})
}

// The function "superseded" returns the number of users of a stored batch whose change has no effect. A user's change
// has no effect if a later change, or a later build of the set, decides whether the user is in the set.
func superseded(lists *live.Lists, batch *live.Batch, stored live.Stored) int {
	if batch.At == 0 || batch.At > batch.After {
		return stored.Superseded
	}
	n := 0
	count := func(users []capping.UserID, kind live.Kind) {
		for _, user := range users {
			known, ok := lists.Of(batch.Set, user)
			if !ok || known.At != stored.At || known.Kind != kind || !known.Counts(batch.After) {
				n++
			}
		}
	}
	count(batch.Add, live.Added)
	count(batch.Remove, live.Removed)
	return n
}

// The method "changeable" returns an error if the caller may not change the set, or if the store does not support live
// changes (by API calls).
func (s *Server) changeable(c *call) (live.Store, *segments.Snapshot, error) {
	if err := s.access.Load().MayChange(c.Key, c.id); err != nil {
		return nil, nil, err
	}
	snapshot := s.inUse()
	if err := wire.Changeable(snapshot, s.sets(), c.id, s.sees(c)); err != nil {
		return nil, nil, err
	}
	store := s.liveStore()
	if store == nil {
		return nil, nil, wire.NewFailure(api.CodeConflict, "this store cannot keep changes of sets by API calls")
	}
	return store, snapshot, nil
}

// clientOf returns the client name that the store records with the caller's changes of sets. If the caller has no API
// key, clientOf returns "".
func clientOf(c *call) string {
	if c.Client == gate.OpenClient {
		return ""
	}
	return c.Client
}

// enterChange admits an API call that changes a set. The method enterChange reserves the users in the budget, and
// checks the set's maximum number of changes and the client's rate limit.
func (s *Server) enterChange(c *call, store live.Store, r *wire.SetChange) (*gate.Place, error) {
	users := r.Users()
	p, err := s.budgets.Enter(c.holder, users, int64(1024+idBytes*users)+r.AnswerBytes())
	if err != nil {
		return nil, err
	}
	if err := s.fits(store.Lists(), c.id, r); err != nil {
		p.Close()
		return nil, err
	}
	if err := s.admit(c, r.Field(), users); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// If the server refuses a change of a set, because the set has too many live changes (by API calls), the caller may
// retry after the time fullRetry.
const fullRetry = time.Minute

// The method "fits" returns an error if the request would exceed the maximum number of live changes (by API calls) of
// the set. If a user already has a live change in the set, a further change of this user is always possible.
func (s *Server) fits(lists *live.Lists, set string, r *wire.SetChange) error {
	most, known := s.sets().Max(set), lists.Len(set)
	if known+r.Users() <= most {
		return nil
	}
	fresh := 0
	for _, users := range [][]capping.UserID{r.Add, r.Remove} {
		for _, user := range users {
			if change, has := lists.Of(set, user); !has || change.Kind == live.Forgotten {
				fresh++
			}
		}
	}
	if fresh == 0 || known+fresh <= most {
		return nil
	}
	s.metrics.Sets.full(set)
	f := wire.NewFailure(api.CodeTooManyRecords, "the set has %d live changes (by API calls), "+
		"and %d more would exceed its maximum of %d: "+
		"publish a build that contains the changes, or raise max_live under sets", known, fresh, most)
	f.RetryAfter = fullRetry
	return f
}

// The method change stores a batch of changes of a set, and reports the batch in the metrics, the log and the audit.
func (s *Server) change(c *call, store live.Store, batch *live.Batch, r *wire.SetChange) (live.Stored, error) {
	users := len(batch.Add) + len(batch.Remove)
	ctx, cancel := s.callContext(c, users)
	defer cancel()
	span := recordSpan{From: s.clock()}
	stored, err := store.Change(ctx, batch)
	span.To = s.clock()
	if errors.Is(err, live.ErrOlderInstance) {
		f := wire.NewFailure(api.CodeUnavailable, "nothing is stored: %v", live.ErrOlderInstance)
		f.Cause = err
		return stored, f
	}
	unstored := stored.Unstored
	if err != nil && len(unstored) == 0 {
		unstored = slices.Sorted(slices.Values(slices.Concat(batch.Add, batch.Remove)))
	}
	added, removed := without(batch.Add, unstored), without(batch.Remove, unstored)
	s.metrics.Sets.count(batch.Set, len(added), len(removed))
	s.audit(c, "set", outcome(len(unstored)), "set", batch.Set, "added", len(added), "removed", len(removed),
		"unavailable", len(unstored))
	if s.journal != nil {
		s.journal.Change(s.recordChange(c, span, batch.Set, stored.At), added, removed, unstored)
	}
	s.warnFull(c.ctx, store.Lists(), batch.Set)
	if err == nil {
		return stored, nil
	}
	f := wire.StoreFailure(ctx, err)
	f.Message = doubtText(len(unstored), users)
	r.Unstored(f, unstored)
	return stored, f
}

// doubtText returns the error text for a call that changes a set, if the store may or may not have recorded the changes
// of some users.
func doubtText(unknown, all int) string {
	stored := ""
	if unknown < all {
		stored = fmt.Sprintf("%d of %d users are stored; ", all-unknown, all)
	}
	users := "users"
	if unknown == 1 {
		users = "user"
	}
	return fmt.Sprintf("%sit is not known whether the changes of %d %s are stored: repeat the call until it "+
		"answers 200; repeating is safe", stored, unknown, users)
}

// The function "without" returns the elements of the list users that are not in the list others. The lists users and
// others must be in ascending order.
func without(users, others []capping.UserID) []capping.UserID {
	if len(others) == 0 {
		return users
	}
	return slices.DeleteFunc(slices.Clone(users), func(user capping.UserID) bool {
		_, found := slices.BinarySearch(others, user)
		return found
	})
}

// recordChange returns the audit record of a change of a set. The record does not contain users.
func (s *Server) recordChange(c *call, span recordSpan, set string, at capping.Instant) *audit.Record {
	x := span.call(c.Caller, capping.Message{}, 0)
	x.Generation, x.Config = s.capper.Segments().Generation(), s.capper.Policy().Version
	at = cmp.Or(at, x.At) // 0: nothing was stored
	x.Change = &audit.SetChange{Set: set, At: at, RequestID: trace.RequestID(c.ctx)}
	return x
}

// warnFull logs a warning if the number of live changes (by API calls) of a set is near the set's maximum.
func (s *Server) warnFull(ctx context.Context, lists *live.Lists, set string) {
	rules, n := s.sets(), lists.Len(set)
	if !rules.NearlyFull(set, n) {
		return
	}
	if _, ok := s.fullLog.take(s.clock()); ok {
		s.log.WarnContext(ctx, "the live changes of a set are near their bound: publish a build that contains "+
			"them, or "+
			"raise max_live", "set", set, "changes", n, "max_live", rules.Max(set))
	}
}

// listSets serves GET /v1/sets.
func (s *Server) listSets(c *call) error {
	if err := s.admit(c, "sets", 1); err != nil {
		return err
	}
	list := wire.SetList(s.inUse(), s.sets(), s.liveLists(), s.capper.Policy())
	sees := s.sees(c)
	list.Sets = slices.DeleteFunc(list.Sets, func(set api.SetInfo) bool { return !sees(set.Name) })
	return writeJSON(c.w, list)
}

// mayRead returns nil if the caller may read the changes of a set. An API key with the scope "read" may read every set.
// An API key without the scope "read" may read only the sets that the key may change.
func (s *Server) mayRead(c *call, set string) error {
	access := s.access.Load()
	if access.May(c.Key, gate.ScopeRead) {
		return nil
	}
	return access.MayChange(c.Key, set)
}

// The method "sees" returns a function that reports whether the caller may read the changes of a set.
func (s *Server) sees(c *call) func(set string) bool {
	return func(set string) bool { return s.mayRead(c, set) == nil }
}

// These constants are the default and the maximum number of changes in a page, and the size in bytes of one change in
// the response.
const (
	usualChanges = 1000
	mostChanges  = 10_000
	changeBytes  = 128 // bytes of JSON; an id that is not dense takes additional bytes
)

// setMembers serves GET /v1/sets/{set}/members.
func (s *Server) setMembers(c *call) error {
	if err := s.mayRead(c, c.id); err != nil {
		return err
	}
	snapshot := s.inUse()
	if err := wire.Changeable(snapshot, s.sets(), c.id, s.sees(c)); err != nil {
		return err
	}
	store := s.liveStore()
	if store == nil {
		return wire.NewFailure(api.CodeConflict, "this store cannot keep changes of sets by API calls")
	}
	from, n, err := wire.CursorOf(c.parameters, s.ids, usualChanges, mostChanges)
	if err != nil {
		return err
	}
	var after capping.Instant
	if text, given := c.parameters["since"]; given {
		if after, err = pastSince(text, s.clock()); err != nil {
			return err
		}
	}
	each := int64(changeBytes)
	if s.ids != nil {
		each += wire.NameBytes(s.ids)
	}
	p, err := s.budgets.Enter(c.holder, n, 1024+each*int64(n))
	if err != nil {
		return err
	}
	defer p.Close()
	if err := s.admit(c, "limit", n); err != nil {
		return err
	}
	changes, asOf := store.Lists().Since(c.id, after, from, n+1), wire.BuiltAsOf(snapshot, c.id)
	if s.ids != nil {
		return writeJSON(c.w, wire.MembersPageOfIDs(c.id, changes, n, asOf, gate.OpenClient, s.ids, snapshot))
	}
	return writeJSON(c.w, wire.MembersPage(c.id, changes, n, asOf, gate.OpenClient))
}

// liveMemberships lists the changes by API calls that now override the published builds of sets for the user.
func (s *Server) liveMemberships(user capping.UserID) []api.LiveMembership {
	store := s.liveStore()
	if store == nil {
		return nil
	}
	return wire.LiveMemberships(s.inUse(), store.Lists().OfUser(user), gate.OpenClient)
}

// forgetChanges removes the live changes of a user from all sets. After forgetChanges has removed the changes, the
// built sets alone decide to which sets the user belongs.
func (s *Server) forgetChanges(ctx context.Context, c *call, user capping.UserID) error {
	store := s.liveStore()
	if store == nil {
		return nil
	}
	users := []capping.UserID{user}
	if err := store.Renew(ctx, users); err != nil {
		return err
	}
	for set, change := range store.Lists().OfUser(user) {
		if change.Kind == live.Forgotten {
			continue
		}
		if _, err := store.Change(ctx, &live.Batch{Set: set, By: clientOf(c), Forget: users,
			After: wire.BuiltAsOf(s.inUse(), set)}); err != nil {
			return fmt.Errorf("forget changes of set %q: %w", set, err)
		}
	}
	return nil
}
