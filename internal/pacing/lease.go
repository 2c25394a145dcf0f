package pacing

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Leases stores the leases (time limits for unused permits) of requests for permits. When the lease of a request ends,
// the service gives the request's permits with future slots back to the pacers. A Leases is safe for concurrent use,
// and every method returns within the deadline of ctx.
type Leases interface {
	// KeepLease begins or extends the lease of a permit request in the group; the lease then lasts at least the given
	// time from now. KeepLease returns when the lease is stored durably. KeepLease never extends a lease that has
	// ended. The lease keeps the argument "call" of the KeepLease that began the lease.
	KeepLease(ctx context.Context, group string, r Request, lasts time.Duration, call []byte) (LeaseState, error)
	// EndedLeases returns leases of the group that have ended, the most recently ended lease first. The argument "most"
	// is the largest number of returned leases.
	EndedLeases(ctx context.Context, group string, most int) ([]Lease, error)
	// RemoveLease removes the lease of a request of the group, but only if the lease has ended. If the request has no
	// lease, RemoveLease returns nil.
	RemoveLease(ctx context.Context, group string, r Request) error
}

// Lease is the ended lease (time limit for unused permits) of a permit request.
type Lease struct {
	Request Request
	Ended   time.Duration // how long ago the lease ended
	Call    []byte        // the argument "call" of the KeepLease that began the lease
}

// LeaseState is the result of KeepLease.
type LeaseState byte

// These constants are the possible states of a lease (time limit for unused permits).
const (
	LeaseBegun    LeaseState = 'B' // there was no lease
	LeaseExtended LeaseState = 'X'
	LeaseEnded    LeaseState = 'E' // the lease has ended: the permits with future slots must be returned
)

// MinLease and MaxLease are the bounds of Call.Lease.
const (
	MinLease = time.Second
	MaxLease = time.Hour
)

// The type "leased" is the stored form of a permit request in the record of a lease (time limit for unused permits).
type leased struct {
	Pacers      []string      `json:"pacers"`
	Permits     int           `json:"permits"`
	MaxWait     time.Duration `json:"max_wait,omitempty"`
	Client      string        `json:"client,omitempty"`
	RequestID   string        `json:"request_id"`
	Message     string        `json:"message,omitempty"`
	Key         string        `json:"key,omitempty"`
	Share       string        `json:"share,omitempty"`
	ClientShare string        `json:"client_share,omitempty"`
}

func (c *Call) encode() ([]byte, error) {
	return json.Marshal(leased{c.Pacers, c.Permits, c.MaxWait, c.Client, c.RequestID, c.Message, c.Key, c.Share,
		c.ClientShare})
}

func decodeCall(text []byte) (*Call, error) {
	var l leased
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, fmt.Errorf("decode the stored lease (time for which a sender holds permits): %w", err)
	}
	return &Call{Pacers: l.Pacers, Permits: l.Permits, MaxWait: l.MaxWait, Client: l.Client, RequestID: l.RequestID,
		Message: l.Message, Key: l.Key, Share: l.Share, ClientShare: l.ClientShare}, nil
}

// checkLease returns a *FieldError if the call asks for an invalid lease (time limit for unused permits).
func (c *Call) checkLease() error {
	switch {
	case c.Lease == 0:
	case c.Lease < MinLease || c.Lease > MaxLease:
		return &FieldError{"lease", fmt.Sprintf("must be from %v to %v, got %v", MinLease, MaxLease, c.Lease)}
	case c.RequestID == "":
		return &FieldError{"lease", "needs a request_id: the sender keeps the lease with calls that repeat this id"}
	}
	return nil
}

// The method "lease" begins or extends the lease (time limit for unused permits) of a request that got permits. A lease
// ends at the last granted slot or earlier, so there are never more leases than remembered requests. An earlier call
// with the same request id may have begun a lease, even if the present call asks for no lease. The method "lease" then
// extends the earlier lease until the last slot, so that the caller keeps its permits. The result "holds" of the method
// "lease" is false if the lease ended before the call could extend the lease. If the lease ended, its permits may have
// gone back to the pacers.
func (p *Pacers) lease(ctx context.Context, call *Call, plan *plan) (holds bool, err error) {
	last := plan.answer.last()
	if last <= 0 {
		return true, nil // all slots are past, so that no permit could be returned
	}
	kept := *call
	if plan.answer.Replayed {
		kept.MaxWait = 0 // unknown: the first call may have had a longer wait
	}
	text, err := kept.encode()
	if err != nil {
		return false, err
	}
	group, request := plan.base.Group(), plan.base.Request
	state, err := p.store.KeepLease(ctx, group, request, min(cmp.Or(call.Lease, last), last), text)
	switch {
	case err != nil:
		return false, err
	case state == LeaseEnded:
		if _, err := p.returnEnded(ctx, &kept); err != nil {
			return false, err
		}
		return false, p.store.RemoveLease(ctx, group, request)
	}
	// If the call is a repetition, an earlier lease may have ended after the store returned the grant.
	return !plan.answer.Replayed, nil
}

// The method "last" returns the wait from Grant.At until the last slot of the grant.
func (g *Grant) last() (wait time.Duration) {
	for i := range g.Runs {
		wait = max(wait, g.Runs[i].WaitOf(g.Runs[i].Permits-1))
	}
	return wait
}

// returnEnded returns to the pacers the permits of a call whose lease (time limit for unused permits) has ended.
func (p *Pacers) returnEnded(ctx context.Context, call *Call) (*Back, error) {
	back, err := p.giveBack(ctx, call, 0)
	if err == nil && p.returned != nil {
		p.returned(back)
	}
	return back, err
}

const (
	mostEnded   = 256             // ended leases in one reply of the store
	endedWithin = 5 * time.Second // time limit of one call to the store
	// unendedFor is the time for which the store keeps an ended lease whose permits cannot be returned. The policy in
	// force may reject the stored permit request of the lease, but another instance may have a newer policy.
	unendedFor = time.Minute
)

// ReturnEnded returns to the pacers the permits of all requests whose lease (time limit for unused permits) has ended.
// ReturnEnded returns a list of the pacers that have free slots again because of the returned permits. If ReturnEnded
// returns an error, the next call of ReturnEnded continues the work. ReturnEnded works on all groups of pacers in
// parallel, so that a slow store for one group does not delay another group.
func (p *Pacers) ReturnEnded(ctx context.Context) (pacers []Pacer, err error) {
	freed := &freed{pacers: map[string]Pacer{}}
	groups := p.Policy().groups()
	errs := make([]error, len(groups))
	var all sync.WaitGroup
	for i, group := range groups {
		all.Go(func() {
			for more := true; more && errs[i] == nil; {
				more, errs[i] = p.endLeases(ctx, group, freed)
			}
		})
	}
	all.Wait()
	return slices.Collect(maps.Values(freed.pacers)), errors.Join(errs...)
}

// The type "freed" collects the pacers to which permits were returned. The type "freed" is safe for concurrent use.
type freed struct {
	mu     sync.Mutex
	pacers map[string]Pacer
}

func (f *freed) add(back *Back) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, n := range back.Targets {
		if n > 0 {
			f.pacers[back.Pacers[i].Name] = back.Pacers[i]
		}
	}
}

// endLeases returns to the pacers the permits of some ended leases (time limits for unused permits), one lease at a
// time. The method endLeases begins with the newest leases, because their slots are the latest, and a log can remove
// its latest slots most easily. After an error, endLeases goes on with the other leases, because one lease must not
// stop the return of others. The result "more" of endLeases reports whether the group may have more ended leases.
func (p *Pacers) endLeases(ctx context.Context, group string, freed *freed) (more bool, err error) {
	within, cancel := context.WithTimeout(ctx, endedWithin)
	ended, err := p.store.EndedLeases(within, group, mostEnded)
	cancel()
	if err != nil {
		return false, err
	}
	removed, began := 0, time.Now()
	var faults []error
	for i := range ended {
		gone, err := p.endLease(ctx, group, &ended[i], freed)
		if err != nil {
			faults = append(faults, err)
		}
		if gone {
			removed++
		}
		if err != nil && time.Since(began) > endedWithin { // the store does not answer
			break
		}
	}
	return len(ended) == mostEnded && removed > 0 && faults == nil, errors.Join(faults...)
}

// endLease returns to the pacers the permits of an ended lease (time limit for unused permits), and removes the lease
// from the store.
func (p *Pacers) endLease(ctx context.Context, group string, l *Lease, freed *freed) (removed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, endedWithin)
	defer cancel()
	leave, err := p.calls.enter(ctx, l.Request)
	if err != nil {
		return false, err
	}
	defer leave()
	call, err := decodeCall(l.Call)
	if err == nil {
		var back *Back
		if back, err = p.returnEnded(ctx, call); err == nil {
			freed.add(back)
		}
	}
	if err != nil && l.Ended < unendedFor {
		if call == nil || errors.As(err, new(*FieldError)) {
			return false, nil
		}
		return false, err
	}
	return true, p.store.RemoveLease(ctx, group, l.Request)
}

// The method "groups" returns the distinct group names of the policy's pacers.
func (p *Policy) groups() (groups []string) {
	for i := range p.Pacers {
		groups = append(groups, p.Pacers[i].Group)
	}
	slices.SortFunc(groups, cmp.Compare[string])
	return slices.Compact(groups)
}
