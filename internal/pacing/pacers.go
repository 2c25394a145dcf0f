package pacing

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Pacers grants permits to start sends by the rules of a Policy, and keeps the logs of pacers in a Store. A Pacers
// value is safe for concurrent use.
type Pacers struct {
	store   Store
	policy  atomic.Pointer[Policy]
	records *Records // nil: the number of records is not bounded
	demands *demands
	reach   *reaching
	calls   underway
	clock   func() time.Time
	// The function returned is called with the result whenever permits go back to pacers because a lease has ended;
	// nil: not called.
	returned func(*Back)
}

// New returns a Pacers that grants permits under the policy and keeps the logs of pacers in the store.
func New(store Store, policy *Policy) *Pacers {
	p := &Pacers{store: store, demands: newDemands(), reach: newReaching(), clock: time.Now}
	p.calls.calls = map[Request]chan struct{}{}
	p.SetPolicy(policy)
	return p
}

// SetClock sets the clock that measures the time since two kinds of calls: the latest call of a share (reserved part of
// a pacer), and the latest call with a short wait. The caller of SetClock must call SetClock before the first call of
// Take.
func (p *Pacers) SetClock(clock func() time.Time) { p.clock = clock }

// The method Bound sets the limits for the number of records (remembered requests and logs) that grants of permits
// create in the store. The caller of Bound must call Bound before the first call of Take.
func (p *Pacers) Bound(records *Records) { p.records = records }

// OnReturn sets a function that receives the result whenever permits go back to pacers because a lease (time limit for
// unused permits) has ended. The caller of OnReturn must call OnReturn before the first call of Take.
func (p *Pacers) OnReturn(returned func(*Back)) { p.returned = returned }

// The method Records returns the Records that was passed to Bound, or nil if Bound was not called.
func (p *Pacers) Records() *Records { return p.records }

// Policy returns the policy in force.
func (p *Pacers) Policy() *Policy { return p.policy.Load() }

// SetPolicy replaces the policy in force. The limits of the new policy also count slots that were granted before.
func (p *Pacers) SetPolicy(policy *Policy) {
	if policy == nil {
		policy = &Policy{}
	}
	p.policy.Store(policy)
	p.demands.forget(func(pacer, share string) bool {
		in, known := policy.Pacer(pacer)
		return known && in.share(share) >= 0
	})
	p.reach.forget(policy)
}

// Call is an API call for permits to start sends.
type Call struct {
	Pacers  []string // names of pacers
	Permits int
	MaxWait time.Duration // the longest wait for a slot, at most each pacer's LongestWait; 0: the response has no waits
	// Client and RequestID together identify the request. If RequestID is "", the store does not remember the request.
	Client, RequestID string
	// Message is a hash of the message id, in hex digits; "" means that the call has no message id.
	Message string
	// Key names the log (list of granted slots) that the call uses at pacers per key; "" means that the call has no
	// key.
	Key string
	// Share is the name of the share (reserved part of a pacer) to which the call belongs. At least one pacer of the
	// call must have a share of this name. If Share is "", the call belongs to the share with the name in ClientShare,
	// at all pacers that have this share.
	Share, ClientShare string
	// If Lease is not 0 and the caller does not repeat the call within this duration, the service returns the permits
	// with future slots. Lease must be MinLease to MaxLease. A call with a lease must have a RequestID.
	Lease time.Duration
}

// The method "share" returns the name of the share (reserved part of a pacer) that the call or its client names, or "".
func (c *Call) share() string {
	return cmp.Or(c.Share, c.ClientShare)
}

// The method "log" returns the hash that names the pacer's log for this call. The hash for a pacer per message is the
// hash of the message. The hash for a pacer per key is the hash of the key. For a pacer with a single log, the result
// is "". If the call lacks the message or the key, "log" returns a *FieldError.
func (c *Call) log(p *Pacer) (string, error) {
	switch {
	case p.Per == PerMessage && c.Message == "":
		return "", &FieldError{"message_id", fmt.Sprintf("is required: the pacer %q is per message", p.Name)}
	case p.Per == PerKey && c.Key == "":
		return "", &FieldError{"key", fmt.Sprintf("is required: the pacer %q is per key", p.Name)}
	case p.Per == PerMessage:
		return c.Message, nil
	case p.Per == PerKey:
		sum := sha256.Sum256([]byte("key\n" + c.Key))
		return hex.EncodeToString(sum[:8]), nil
	}
	return "", nil
}

// Answer is the result of a call for permits.
type Answer struct {
	Grant            // Target is an index into Pacers
	Refused int      // permits of the call that were refused
	Fresh   int      // granted permits that no earlier call received
	Pacers  []Pacer  // by target
	Shares  []string // by target: the call's share (reserved part) of the pacer; "": no share
	Version string   // the version of the policy that decided the call
}

// FieldError is the error for an invalid field in a call for permits.
type FieldError struct {
	Field string // pacer, pacers[1], message_id or request_id
	Rule  string // the rule and the invalid value
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Rule }

// Check returns a *FieldError if the call for permits is invalid under the policy in force, and nil otherwise.
func (p *Pacers) Check(call *Call) error {
	_, err := p.plan(call)
	return err
}

// The method Take takes permits for the call from the pacers that the call names. Take returns a *FieldError for an
// invalid call. Take returns a *RecordsError if it took no permits because the store already has the maximum number of
// records. After any other error, Take may or may not have taken permits, and the caller must not send anything.
func (p *Pacers) Take(ctx context.Context, call *Call) (*Answer, error) {
	plan, err := p.plan(call)
	if err != nil {
		return nil, err
	}
	plan.base.Request = plan.request(call, 0)
	leave, err := p.calls.enter(ctx, plan.base.Request)
	if err != nil {
		return nil, err
	}
	defer leave()
	entry, err := p.records.enter(ctx, call.Client, plan.base)
	if err != nil {
		return nil, err
	}
	defer entry.leave()
	if call.Lease > 0 { // if a caller leaves after it got permits, only the lease returns them
		var cancel context.CancelFunc
		ctx, cancel = untilDeadline(ctx)
		defer cancel()
	}
	answer, err := p.takeOnce(ctx, call, plan, entry)
	if err != nil || answer.Granted == 0 {
		return answer, err
	}
	if repeated := answer.Replayed && answer.Fresh == 0; call.Lease == 0 && !repeated { // nobody can have begun a lease
		return answer, nil
	}
	holds, err := p.lease(ctx, call, plan)
	if err != nil {
		return nil, err
	}
	if holds {
		return answer, nil
	}
	if plan, err = p.plan(call); err != nil {
		return nil, err
	}
	plan.base.Request = plan.request(call, 0)
	return p.takeOnce(ctx, call, plan, entry)
}

// untilDeadline returns a context that ends at the deadline of ctx, but not when the caller closes its connection.
func untilDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	stays := context.WithoutCancel(ctx)
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithDeadline(stays, deadline)
	}
	return stays, func() {}
}

// takeOnce asks the store once for the permits of the call, in the steps of the call's plan.
func (p *Pacers) takeOnce(ctx context.Context, call *Call, plan *plan, entry *entry) (*Answer, error) {
	if err := p.learn(ctx, plan); err != nil {
		return nil, err
	}
	if err := p.learnReach(ctx, plan); err != nil {
		return nil, err
	}
	t := &taking{Pacers: p, plan: plan, call: call, entry: entry}
	take := t.take
	if call.MaxWait == 0 && call.Permits > 0 {
		take = t.takeNow
	}
	if err := take(ctx); err != nil {
		return nil, err
	}
	p.tellReach(ctx, plan)
	return plan.answer, nil
}

// The type "taking" is the state of a call for permits during its requests to the store.
type taking struct {
	*Pacers
	*plan
	call  *Call
	entry *entry
	part  int  // number of parts of the request that the store remembers
	calls int  // number of calls to the store
	more  bool // Grant.More of the latest grant
	ends  bool // the call repeats one of several steps: the next request is remembered, or ends the steps
}

// The method "take" asks the store for the permits of a call, in the steps of the call's plan.
func (t *taking) take(ctx context.Context) error {
	t.answer.Refused = t.base.Permits
	var own, next *following // the slot of one more permit: from the share's own part, and from any part
	for _, step := range t.steps {
		over, found, err := t.step(ctx, step)
		if err != nil {
			return err
		}
		if step.own {
			own = found
		} else {
			next = found
		}
		if over {
			break
		}
	}
	if len(t.steps) > 1 {
		if next == nil || own != nil && own.at < next.at {
			next = own
		}
		t.answer.Next, t.answer.Target, t.answer.Limit = max(0, next.at.Sub(t.answer.At)), next.target, next.limit
	}
	if t.calls > 1 { // a later part can get free slots that were returned after an earlier part
		t.answer.inOrder()
	}
	return nil
}

// The method "step" asks the store for the permits of the call that earlier steps did not get. The result "over" of the
// method "step" is true if no further step can add permits. A call for 0 permits performs all steps.
func (t *taking) step(ctx context.Context, step step) (over bool, next *following, err error) {
	for {
		if refused, next, err := t.refused(ctx, step); refused || err != nil {
			return false, next, err
		}
		ask, pacers := t.ask(step, t.asked)
		ask.Permits = t.answer.Refused
		ask.Request, ask.Continues, ask.Ends = t.request(t.call, t.part), t.more, t.ends && !t.more
		if t.part == 0 && (len(t.steps) > 1 || ask.Permits > MostSteps) {
			ask.Lasts += callLasts
		}
		grant, err := t.store.TakePermits(ctx, ask)
		if errors.As(err, new(*ReuseError)) {
			return true, nil, t.call.reused()
		}
		if err != nil {
			return true, nil, err
		}
		t.strip(&grant, pacers)
		t.entry.note(ask, &grant)
		if grant.Granted > 0 || t.more || grant.Replayed {
			t.part++
		}
		t.calls++
		t.more, t.ends = grant.More, t.ends || grant.Replayed && (len(t.steps) > 1 || t.leaves)
		t.answer.add(grant)
		t.answer.Refused -= grant.Granted
		next = &following{grant.At.Add(grant.Next), grant.Target, grant.Limit}
		switch {
		case t.calls == mostParts, t.base.Permits > 0 && t.answer.Refused == 0:
			return true, next, nil
		case ask.Ends && !grant.Replayed:
			return true, next, nil
		case grant.Replayed && grant.Granted == 0 && !ask.Continues: // the request ends, or its permits were returned
			if follows, err := t.remembers(ctx); err != nil || !follows {
				return true, next, err
			}
		case t.more || t.ends:
		default:
			return grant.Replayed, next, nil
		}
	}
}

// The method "refused" reports whether the step gets no permits because shares (reserved parts) take all permits of a
// pacer. A repeated call still gets the permits that the store remembers.
func (t *taking) refused(ctx context.Context, step step) (refused bool, next *following, err error) {
	pacer, opens := t.shut(step)
	if pacer < 0 || t.base.Permits == 0 {
		return false, nil, nil
	}
	if t.call.RequestID != "" {
		if known, err := t.remembers(ctx); known || err != nil {
			return false, nil, err
		}
	}
	if t.calls == 0 {
		grant, err := t.store.TakePermits(ctx, &Ask{Targets: t.base.Targets})
		if err != nil {
			return false, nil, err
		}
		t.calls++
		t.answer.add(grant)
		t.answer.Next = max(grant.Next, opens)
		t.answer.Target, t.answer.Limit = pacer, ByShare
	}
	return true, &following{t.answer.At.Add(opens), pacer, ByShare}, nil
}

// The method "shut" looks for a pacer whose shares (reserved parts) take all its permits, so that this step gets no
// permits. The results of the method "shut" are the index of the pacer, and the time until the pacer has permits again.
// If the step may get permits, "shut" returns -1.
func (t *taking) shut(s step) (pacer int, opens time.Duration) {
	pacer = -1
	for i, share := range t.shares {
		p := &t.answer.Pacers[i]
		if len(p.Shares) == 0 || s.own && share >= 0 {
			continue
		}
		now := t.clock()
		free, is := p.shut(func(share int) time.Duration { return t.demands.left(p.Name, p.Shares[share].Name, now) })
		if is && (pacer < 0 || free > opens) {
			pacer, opens = i, free
		}
	}
	return pacer, opens
}

// The method "asked" reports whether a call has named the share (reserved part) of the pacer within the last few
// seconds.
func (p *Pacers) asked(pacer, share string) bool { return p.demands.is(pacer, share, p.clock()) }

// The method "remembers" reports whether the store remembers a grant for the call's next step, from an earlier attempt
// of the call.
func (t *taking) remembers(ctx context.Context) (bool, error) {
	return t.store.HasRequest(ctx, t.base.Group(), t.request(t.call, t.part))
}

// Back is the result of a return of permits: the permits of a call that went back to the pacers.
type Back struct {
	Returned         // of all parts of the request; Targets by pacer
	Pacers   []Pacer // by target
}

// The method Return gives permits of an earlier call back to the pacers: all permits with future slots, except the
// first "used" permits of the call. The argument "call" of Return must equal the call that took the permits. The only
// exception is the field MaxWait, which may be 0 if the original value is not known. The method Return returns a
// *FieldError for an invalid call. After any other error, Return may or may not have returned the permits, and the
// caller must not use any of them.
func (p *Pacers) Return(ctx context.Context, call *Call, used int) (*Back, error) {
	if call.RequestID == "" || call.Permits == 0 {
		return nil, &FieldError{"request_id", "is required: permits without a request id cannot be given back"}
	}
	if used > call.Permits {
		return nil, &FieldError{"used", fmt.Sprintf("must be at most the permits of the call, %d, got %d",
			call.Permits, used)}
	}
	plan, err := p.planReturn(call)
	if err != nil {
		return nil, err
	}
	leave, err := p.calls.enter(ctx, plan.request(call, 0))
	if err != nil {
		return nil, err
	}
	defer leave()
	back, err := p.giveBack(ctx, call, used)
	if err == nil && !back.Known && len(back.Pacers) < len(call.Pacers) {
		_, err = p.plan(call) // no call took permits of a pacer that has been removed: its name is wrong
	}
	return back, err
}

// planReturn plans the return of a call's permits like the method "plan". If the policy no longer has some pacers of
// the call, planReturn leaves these pacers out, so that the permits go back to the other pacers.
func (p *Pacers) planReturn(call *Call) (*plan, error) {
	plan, err := p.plan(call)
	if err == nil {
		return plan, nil
	}
	policy, left := p.Policy(), *call
	left.Pacers = slices.DeleteFunc(slices.Clone(call.Pacers), func(name string) bool {
		_, known := policy.Pacer(name)
		return !known
	})
	if len(left.Pacers) == 0 || len(left.Pacers) == len(call.Pacers) {
		return plan, err
	}
	left.Share, left.ClientShare = "", call.share() // the share may be one of a removed pacer
	if plan, err = p.plan(&left); err == nil {
		plan.base.Content = contentOf(call)
	}
	return plan, err
}

// giveBack does the work of Return. The caller of giveBack must first call underway.enter, so that no other call works
// on the same request.
func (p *Pacers) giveBack(ctx context.Context, call *Call, used int) (*Back, error) {
	plan, err := p.planReturn(call)
	if err != nil {
		return nil, err
	}
	ask := plan.all()
	if ask.MaxWait = call.MaxWait; ask.MaxWait == 0 {
		ask.MaxWait = MaxWait
	}
	pacers := plan.answer.Pacers
	back := &Back{Pacers: pacers, Returned: Returned{Targets: make([]int, len(pacers))}}
	empty := false // the previous part has no permits: an earlier return may have ended the request there
	// The variable "kept" is the number of permits that the parts of one step keep. The slots of different steps may
	// overlap in time, so all used permits may be permits of the next step.
	kept := 0
	for part := range mostParts {
		ask.Request = plan.request(call, part)
		one, err := p.store.ReturnPermits(ctx, ask, max(0, used-kept))
		if errors.As(err, new(*ReuseError)) {
			return nil, call.reused()
		}
		if err != nil {
			return nil, err
		}
		one.Targets = one.Targets[:len(pacers)]
		back.add(&one)
		if kept += one.Kept; !one.More {
			kept = 0
		}
		switch several := len(plan.steps) > 1 || plan.leaves; { // each step of the call may have stored a part
		case part > 1 && !one.Known && empty:
			return back, nil
		case part > 0 && !one.Known:
			if err := p.end(ctx, plan, ask); err != nil {
				return nil, err
			}
			return back, nil
		case !one.More && (!several || !one.Known):
			return back, nil
		}
		empty = one.Kept+one.Permits == 0
	}
	return back, nil
}

// The method "end" marks a request in the store as ended after the return of the request's permits. If a request is
// marked as ended, a delayed step of the original call takes no permits.
func (p *Pacers) end(ctx context.Context, plan *plan, returned *Ask) error {
	ask := *plan.base
	ask.Request, ask.Ends = returned.Request, true
	ask.Lasts = returned.MaxWait
	for i := range plan.answer.Pacers {
		ask.Lasts = min(ask.Lasts, plan.answer.Pacers[i].LongestWait())
	}
	_, err := p.store.TakePermits(ctx, &ask)
	return err
}

// The method "add" adds the result of a return for the next part of a request to the results for its earlier parts.
func (b *Back) add(part *Returned) {
	for i := range b.Runs { // waits become relative to the latest step
		b.Runs[i].Wait -= part.At.Sub(b.At)
	}
	b.At, b.Known, b.More = part.At, b.Known || part.Known, part.More
	b.Kept, b.Permits, b.Runs = b.Kept+part.Kept, b.Permits+part.Permits, append(b.Runs, part.Runs...)
	for i, n := range part.Targets {
		b.Targets[i] += n
	}
}

// The method "reused" returns the error for a request id that an earlier call with other content has already used.
func (c *Call) reused() error {
	return &FieldError{"request_id", fmt.Sprintf("%q was used by an earlier request with other pacers, "+
		"another number of permits, or another message, key or share", c.RequestID)}
}

// callLasts is the longest time between two requests to the store for the same call for permits. The store remembers
// the first step of a call for callLasts longer than the other steps. If the store forgot the first step before the
// later steps, a repeated call would take the first step's permits again.
const callLasts = 15 * time.Second

// mostParts is the largest number of requests to the store into which one call may be split because one request is
// limited to MostSteps.
const mostParts = 32

// The method "add" adds the permits that the call got in its next step to the permits from earlier steps.
func (a *Answer) add(part Grant) {
	for i := range a.Runs { // waits become relative to the latest step
		a.Runs[i].Wait -= part.At.Sub(a.At)
	}
	if !part.Replayed {
		a.Fresh += part.Granted
	}
	part.Granted += a.Granted
	part.Runs = append(a.Runs, part.Runs...)
	part.Replayed = part.Replayed || a.Replayed
	a.Grant = part
}

// The method "plan" converts a call into the requests that Pacers sends to the store under the policy in force. The
// store checks each of the planned requests with Ask.Check.
func (p *Pacers) plan(call *Call) (*plan, error) {
	if err := call.checkLease(); err != nil {
		return nil, err
	}
	policy := p.Policy()
	answer := &Answer{Version: policy.Version}
	ask := &Ask{Permits: call.Permits, MaxWait: call.MaxWait, Content: contentOf(call)}
	plan := &plan{answer: answer, base: ask}
	for i, name := range call.Pacers {
		field := fmt.Sprintf("pacers[%d]", i)
		pacer, known := policy.Pacer(name)
		switch {
		case !known:
			return nil, &FieldError{field, unknown(policy, name)}
		case slices.Contains(call.Pacers[:i], name):
			return nil, &FieldError{field, fmt.Sprintf("is given twice: %q", name)}
		}
		log, err := call.log(pacer)
		if err != nil {
			return nil, err
		}
		if i > 0 && pacer.Group != answer.Pacers[0].Group {
			return nil, &FieldError{field, fmt.Sprintf("must be of the same group as the other pacers: %s, but %s",
				grouped(pacer), grouped(&answer.Pacers[0]))}
		}
		target := Target{Pacer: name, Message: log, Group: pacer.Group, Limits: pacer.Judged()}
		ask.MaxWait = min(ask.MaxWait, pacer.LongestWait())
		ask.Targets, answer.Pacers = append(ask.Targets, target), append(answer.Pacers, *pacer)
		share := pacer.share(call.share())
		plan.shares, answer.Shares = append(plan.shares, share), append(answer.Shares, pacer.shareName(share))
	}
	if call.Share != "" && !slices.ContainsFunc(plan.shares, func(share int) bool { return share >= 0 }) {
		return nil, &FieldError{"share", fmt.Sprintf("must be a share of one of the pacers, got %q (%s)", call.Share,
			ShareNames(answer.Pacers))}
	}
	plan.wait = ask.MaxWait
	plan.leaves = !slices.ContainsFunc(answer.Pacers, func(p Pacer) bool { return len(p.Shares) > 0 }) &&
		slices.ContainsFunc(answer.Pacers, func(p Pacer) bool { return p.reached() })
	plan.setSteps()
	return plan, plan.checkTargets()
}

// Standing is a pacer together with the state of its log: the used slots and the wait for the next slot.
type Standing struct {
	*Pacer
	State       // zero for a pacer with several logs, and for a pacer with an error
	Err   error // the store could not read the log; nil: no error
}

// The method Look returns the state of the log of the pacer with the given name: the used slots and the wait for the
// next slot. For the name "", Look returns the states of all pacers, in the order of the returned policy. The method
// Look takes no permits. If no pacer has the name, Look returns a *FieldError. If the store can read some logs but not
// all, Look sets the field Err of the other pacers. If the store can read no log, Look returns the error of the store.
func (p *Pacers) Look(ctx context.Context, name string) (standings []Standing, policy *Policy, err error) {
	policy = p.Policy()
	for i := range policy.Pacers {
		if pacer := &policy.Pacers[i]; name == "" || pacer.Name == name {
			standings = append(standings, Standing{Pacer: pacer})
		}
	}
	if name != "" && len(standings) == 0 {
		return nil, nil, p.unknown(name)
	}
	var plain []*Standing
	for i := range standings {
		if standings[i].Per == PerPacer {
			plain = append(plain, &standings[i])
		}
	}
	slices.SortStableFunc(plain, func(a, b *Standing) int { return cmp.Compare(a.Group, b.Group) })
	p.lookAtAll(ctx, plain)
	if len(plain) > 0 && !slices.ContainsFunc(plain, func(s *Standing) bool { return s.Err == nil }) {
		return nil, nil, plain[0].Err
	}
	return standings, policy, nil
}

// looksAtOnce is the number of reads of logs that run at the same time. If a master is down, the store waits for this
// master; the wait must not delay the reads from other masters.
const looksAtOnce = 16

// lookAtAll reads the states of the pacers, which the caller has sorted by group. One read covers at most MaxPacers
// pacers of one group.
func (p *Pacers) lookAtAll(ctx context.Context, sorted []*Standing) {
	var reads errgroup.Group
	reads.SetLimit(looksAtOnce)
	for len(sorted) > 0 {
		n := 1
		for n < min(len(sorted), MaxPacers) && sorted[n].Group == sorted[0].Group {
			n++
		}
		together := sorted[:n]
		reads.Go(func() error {
			p.look(ctx, together)
			return nil
		})
		sorted = sorted[n:]
	}
	_ = reads.Wait()
}

// For some pacers of one group, the method "look" reads the states of the logs from the store. The method "look"
// accepts at most MaxPacers pacers, and sets the field State or the field Err of each pacer.
func (p *Pacers) look(ctx context.Context, standings []*Standing) {
	ask := &Ask{}
	for _, s := range standings {
		ask.Targets = append(ask.Targets, Target{Pacer: s.Name, Group: s.Group, Limits: s.Judged()})
	}
	grant, err := p.store.TakePermits(ctx, ask)
	for i, s := range standings {
		if s.Err = err; err == nil {
			s.State = grant.States[i]
		}
	}
}

// The method "request" returns the hash by which the store identifies one step of the call's request for permits. The
// hash of a request id includes the pacer group, because a store may keep different groups in different places.
func (p *plan) request(call *Call, part int) (r Request) {
	if call.RequestID == "" || call.Permits == 0 {
		return r
	}
	text := fmt.Appendf(nil, "%s\n%d\n%s", call.Client, part, call.RequestID)
	if group := p.base.Group(); group != "" {
		text = fmt.Appendf(text, "\n%q", group)
	}
	sum := sha256.Sum256(text)
	return Request(sum[:16])
}

// contentOf returns a hash of the names and numbers in the call, so that a store recognizes a repeated call. The hash
// from contentOf does not depend on the configuration, because a new configuration may change the logs of a pacer.
func contentOf(call *Call) [8]byte {
	content := fmt.Appendf(nil, "%q %d %s", slices.Sorted(slices.Values(call.Pacers)), call.Permits, call.Message)
	if call.Key != "" {
		content = fmt.Appendf(content, " %q", call.Key)
	}
	if call.Share != "" {
		content = fmt.Appendf(content, " share %q", call.Share)
	}
	sum := sha256.Sum256(content)
	return [8]byte(sum[:8])
}

// The method Forget removes all granted slots of the pacer with the given name from the store. The policy in force need
// not contain the pacer.
func (p *Pacers) Forget(ctx context.Context, name string) error {
	if p.store == nil {
		return p.unknown(name)
	}
	group := AnyGroup
	if pacer, known := p.Policy().Pacer(name); known {
		group = pacer.Group
	}
	return p.store.ForgetPacer(ctx, name, group)
}

// The function "grouped" returns, for error texts, a text that names a pacer and the pacer's group.
func grouped(p *Pacer) string {
	if p.Group == "" {
		return fmt.Sprintf("%q has no group", p.Name)
	}
	return fmt.Sprintf("%q has the group %q", p.Name, p.Group)
}

func (p *Pacers) unknown(name string) *FieldError {
	return &FieldError{"pacer", unknown(p.Policy(), name)}
}

func unknown(policy *Policy, name string) string {
	return fmt.Sprintf("must be a configured pacer, got %q (%s)", name, policy.PacerNames())
}
