package pacingtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"capper/internal/pacing"
	"capper/internal/testkit"
)

// Callers generates load on pacers with shares and on pacers with one log per key; each caller uses random instances.
// Each caller takes all permits that it can get. Some callers return some permits, or let the lease of a call end. An
// Oracle checks every grant of permits by the stores, including grants in the logs of shares and keys. The test must
// set exported fields before it calls Begin.
type Callers struct {
	Policy   *pacing.Policy // from CallersPolicy
	Stores   []pacing.Store // one store for each instance
	Oracle   *Oracle
	Patience time.Duration // the timeout of each call

	load
	instances []*pacing.Pacers

	mu     sync.Mutex
	latest []*called
	faults []string
	tally  Tally
}

// The type "called" is a call with a request id, together with the result that the caller got.
type called struct {
	call     *pacing.Call
	slots    []pacing.Time
	returned bool // some of the slots may have been returned
	kept     int  // permits that the call had after a return; -1: unknown, or no return
}

// CallersPolicy returns pacers with names that no other test uses. The first pacer has a rate and shares, the second
// pacer has a window and shares, and the third pacer has a log per key. The last pacer, the ledger, only counts
// permits.
func CallersPolicy() *pacing.Policy {
	otp, alerts := pacing.Share{Name: "otp", Percent: 20}, pacing.Share{Name: "alerts", Percent: 10}
	p := &pacing.Policy{Pacers: []pacing.Pacer{
		{Rate: pacing.Rate{Permits: 250, Per: time.Second}, Limits: []pacing.Limit{{Max: 9000, Window: time.Minute}},
			Shares: []pacing.Share{otp, alerts}},
		{Limits: []pacing.Limit{{Max: 100, Window: time.Second}, {Max: 4000, Window: time.Minute}},
			Shares: []pacing.Share{otp}},
		{Rate: pacing.Rate{Permits: 50, Per: time.Second}, Limits: []pacing.Limit{{Max: 400, Window: 20 * time.Second}},
			Per: pacing.PerKey},
		{Limits: Ledger().Limits},
	}}
	for i := range p.Pacers {
		p.Pacers[i].Name, p.Pacers[i].MaxWait = Name(), pacing.MaxWait
	}
	return p
}

// NewCallers returns test callers, and creates one instance of Pacers with the policy on each of the stores.
func NewCallers(policy *pacing.Policy, oracle *Oracle, stores ...pacing.Store) *Callers {
	c := &Callers{Policy: policy, Oracle: oracle, Patience: 10 * time.Second,
		load: load{stop: make(chan struct{})}, Stores: stores}
	for _, store := range stores {
		c.instances = append(c.instances, pacing.New(&watched{store, oracle}, policy))
	}
	return c
}

// A watched store is the store under test with a wrapper that passes each grant of the store to an Oracle.
type watched struct {
	pacing.Store
	oracle *Oracle
}

// TakePermits implements pacing.Store.
func (w *watched) TakePermits(ctx context.Context, ask *pacing.Ask) (pacing.Grant, error) {
	grant, err := w.Store.TakePermits(ctx, ask)
	switch {
	case err == nil && grant.Replayed:
		w.oracle.Add(ofPacers(ask), &grant)
	case err == nil:
		w.oracle.Add(ask, &grant)
	}
	return grant, err
}

// ofPacers returns a copy of the request for permits without the targets (logs with limits) of shares. If the reply to
// one step of a call was lost, the repeated step may get the grant of another step. The grant of the other step may
// name another share.
func ofPacers(ask *pacing.Ask) *pacing.Ask {
	a := *ask
	a.Targets = nil
	for _, t := range ask.Targets {
		if !slices.ContainsFunc(a.Targets, func(u pacing.Target) bool { return u.Pacer == t.Pacer }) {
			a.Targets = append(a.Targets, t)
		}
	}
	return &a
}

// ReturnPermits implements pacing.Store.
func (w *watched) ReturnPermits(ctx context.Context, ask *pacing.Ask, used int) (pacing.Returned, error) {
	w.oracle.GiveUp(ask, used)
	back, err := w.Store.ReturnPermits(ctx, ask, used)
	if err == nil {
		w.oracle.Return(ask, &back)
	}
	return back, err
}

// The method Begin starts the given number of test callers, and one client that returns the permits of ended leases.
func (c *Callers) Begin(callers int, seed uint64) {
	c.begin(callers, seed, 1000, c.once)
	c.begin(1, seed, 2000, c.endLeases)
}

// endLeases lets a random instance return the permits of ended leases to the pacers.
func (c *Callers) endLeases(rng *rand.Rand) time.Duration {
	ctx, cancel := context.WithTimeout(context.Background(), c.Patience)
	defer cancel()
	_, _ = c.instances[rng.IntN(len(c.instances))].ReturnEnded(ctx) // after an error, the next call continues
	return 100 * time.Millisecond
}

// The method "call" returns a random call for permits. Most of the random calls belong to a share (reserved part of a
// pacer), or have a key, or both.
func (c *Callers) call(rng *rand.Rand) *pacing.Call {
	names := func(pacers ...int) (names []string) {
		for _, i := range pacers {
			names = append(names, c.Policy.Pacers[i].Name)
		}
		return names
	}
	mixes := [][]string{names(0, 3), names(1, 3), names(0, 2, 3), names(2, 1, 3), names(1, 0, 3), names(2, 3)}
	call := &pacing.Call{Client: "callers", Pacers: mixes[rng.IntN(len(mixes))], Permits: []int{1, 10, 60}[rng.IntN(3)],
		MaxWait: []time.Duration{0, time.Second, 10 * time.Second}[rng.IntN(3)], Key: fmt.Sprint("+", rng.IntN(3)),
		ClientShare: []string{"", "otp", "otp", "alerts"}[rng.IntN(4)]}
	if call.ClientShare == "otp" && !slices.Equal(call.Pacers, mixes[5]) {
		call.Share = "otp"
	}
	if rng.IntN(2) == 0 {
		call.RequestID = Name()
		call.Lease = []time.Duration{0, 0, time.Second, 5 * time.Second}[rng.IntN(4)]
	}
	return call
}

// The method "once" makes a call for permits, and repeats the call if it has a request id. The result of "once" is the
// pause until the next call.
func (c *Callers) once(rng *rand.Rand) time.Duration {
	call := c.call(rng)
	for attempt := 0; ; attempt++ {
		sent := time.Now()
		answer, err := c.take(c.instances[rng.IntN(len(c.instances))], call)
		switch {
		case err == nil:
			if c.keep(call, answer); call.RequestID != "" && answer.Granted > 0 {
				c.holdLease(rng, call, answer.Granted, sent)
				c.mayReturn(rng, call, answer)
			}
			return min(answer.Next, longestPause)
		case call.RequestID == "" || attempt == 100:
			return longestPause
		}
		c.pause(longestPause)
	}
}

// holdLease repeats a call with a lease after a pause, and checks that the call keeps its permits until the lease ends.
func (c *Callers) holdLease(rng *rand.Rand, call *pacing.Call, granted int, sent time.Time) {
	if call.Lease == 0 {
		return
	}
	c.pause(time.Duration(rng.IntN(100)) * time.Millisecond)
	again, err := c.take(c.instances[rng.IntN(len(c.instances))], call)
	if err == nil && again.Granted != granted && time.Since(sent) < call.Lease {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.faults = append(c.faults, fmt.Sprintf("a call with a lease of %v was granted %d permits, and has %d",
			call.Lease, granted, again.Granted))
	}
}

// mayReturn returns the permits of some randomly chosen calls to the pacers. A call with a lease may lose further
// permits when the lease ends.
func (c *Callers) mayReturn(rng *rand.Rand, call *pacing.Call, answer *pacing.Answer) {
	returns := rng.IntN(100) < 30
	past := &called{call: call, slots: slotsOf(&answer.Grant), returned: returns || call.Lease > 0, kept: -1}
	c.note(past)
	if !returns {
		return
	}
	kept := c.giveBack(rng, call, rng.IntN(2)*rng.IntN(answer.Granted+1))
	if call.Lease == 0 {
		past.kept = kept
	}
}

func (c *Callers) take(p *pacing.Pacers, call *pacing.Call) (*pacing.Answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.Patience)
	defer cancel()
	began := time.Now()
	answer, err := p.Take(ctx, call)
	one := Tally{Calls: 1, Slowest: time.Since(began), LastError: err}
	if err != nil {
		one.Lost = 1
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tally.Add(one)
	if errors.As(err, new(*pacing.FieldError)) {
		c.faults = append(c.faults, err.Error())
	}
	return answer, err
}

// The method "keep" checks the result of a call and counts the granted permits.
func (c *Callers) keep(call *pacing.Call, answer *pacing.Answer) {
	slots := slotsOf(&answer.Grant)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tally.Granted += answer.Granted
	if len(slots) != answer.Granted || answer.Granted+answer.Refused != call.Permits || !slices.IsSorted(slots) {
		c.faults = append(c.faults, fmt.Sprintf("%d permits were granted and %d refused of %d, with the slots %v",
			answer.Granted, answer.Refused, call.Permits, slots))
	}
}

// The method "note" adds the call to the list of the latest calls, which Settle repeats at the end of the test.
func (c *Callers) note(past *called) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latest = append(c.latest, past)
	c.latest = c.latest[max(0, len(c.latest)-100):]
}

// giveBack returns the permits of a call to the pacers, except the first "used" permits. The method giveBack tries
// again until the return succeeds. The result of giveBack is the number of permits that the call keeps, or -1 if this
// number is not known.
func (c *Callers) giveBack(rng *rand.Rand, call *pacing.Call, used int) (kept int) {
	for range 100 {
		ctx, cancel := context.WithTimeout(context.Background(), c.Patience)
		back, err := c.instances[rng.IntN(len(c.instances))].Return(ctx, call, used)
		cancel()
		if err == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.tally.Returned += back.Permits
			return back.Kept
		}
		c.pause(longestPause)
		if c.stopped() {
			return -1
		}
	}
	return -1
}

// Tally returns the number of calls by the test callers, and the numbers of their results.
func (c *Callers) Tally() Tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tally
}

// The method Settle repeats the latest calls, possibly at another instance, and fails the test if a call gets no
// result. The method Settle records a fault if a repeated call gets other slots than the first call. The test must call
// Settle after End, and only when the stores are healthy.
func (c *Callers) Settle(t testing.TB) {
	t.Helper()
	for i, past := range c.latest {
		var again *pacing.Answer
		testkit.Eventually(t, func() (ok bool) {
			answer, err := c.take(c.instances[i%len(c.instances)], past.call)
			again = answer
			return err == nil
		}, "a call of a share or a key is answered again: %v", &c.tally)
		forgotten := len(past.slots) > 0 && // on a slow machine, the store may have forgotten the request
			past.slots[len(past.slots)-1].Add(pacing.RememberFor-c.Patience) <= again.At
		slots := slotsOf(&again.Grant)
		if past.kept >= 0 && !forgotten && len(slots) != past.kept {
			c.faults = append(c.faults, fmt.Sprintf("a call %+v kept %d permits, and has %d", past.call, past.kept,
				len(slots)))
		}
		if !past.returned && !forgotten && !slices.Equal(slots, past.slots) {
			c.faults = append(c.faults, fmt.Sprintf("a call %+v was granted %d slots at %v, and again %d at %v",
				past.call, len(past.slots), past.slots, len(slots), slots))
		}
	}
}

// Faults returns the faults that the Oracle and the callers found, including granted permits that are missing in the
// ledger (a pacer that only counts permits).
func (c *Callers) Faults(t testing.TB) []string {
	t.Helper()
	faults := append(c.Oracle.Faults(), c.faults...)
	ledger := pacing.Target{Pacer: c.Policy.Pacers[3].Name, Limits: c.Policy.Pacers[3].Judged()}
	used := -1
	testkit.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), c.Patience)
		defer cancel()
		grant, err := c.Stores[0].TakePermits(ctx, ask(0, 0, ledger))
		if err == nil {
			used = grant.States[0].Used[0]
		}
		return err == nil
	}, "the store tells what is used")
	if granted := c.Oracle.Granted(&ledger); used < granted {
		faults = append(faults, fmt.Sprintf("%d permits were granted, %d are recorded", granted, used))
	}
	return faults
}
