package livetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"capper/internal/capping"
	"capper/internal/live"
)

// An Instance is an instance of the service, in this process or in another process, that a Storm (test load) calls.
type Instance interface {
	Change(ctx context.Context, b *live.Batch) (live.Stored, error)
	// Decide asks the Capper of NewCapper for decisions about a send to the users. If Decide fails, the users are
	// unavailable.
	Decide(ctx context.Context, message string, record bool, users []capping.UserID) []capping.Verdict
}

// Storm generates load: its callers change Set and request decisions about sends, each call at a random instance. A
// Storm notes which changes were acknowledged. If a decision begins after a change was acknowledged, the decision
// must take the change into account.
type Storm struct {
	Users    []capping.UserID // ascending; no other storm may have these users
	Patience time.Duration    // time limit of each call
	Rest     time.Duration    // pause between two calls of a caller
	// Lagging is true if an instance may deny sends to a user for a while after another instance has acknowledged the
	// user's removal from the set. The reason is that an instance does not ask the store about users of the suppressed
	// set.
	Lagging bool

	running sync.WaitGroup
	stop    chan struct{}
	calls   int

	mu     sync.Mutex
	people []person // index as in Users
	silent bool     // the Storm ignores responses
	tally  Tally
}

// The type "person" holds the test's knowledge about one user: whether the user is in the set.
type person struct {
	state    state
	attempts int // number of changes that have begun
}

type state uint8

const (
	absent  state = iota // the user is not in the set
	present              // the user is in the set
	unknown              // a change is in progress or got no response
)

// Tally counts the calls of a Storm (random calls to a service), and the wrong decisions that the Storm found.
type Tally struct {
	Changes, Acknowledged int // users whose change was requested and acknowledged
	Decisions, Judged     int // all decisions, and decisions whose expected result was known during the whole call
	Unavailable           int
	Allowed               int // violation: allowed after an acknowledged addition
	Suppressed            int // violation: suppressed after an acknowledged removal
	Slowest               time.Duration
}

// The method Add adds the counts of another Tally.
func (y *Tally) Add(z Tally) {
	y.Changes += z.Changes
	y.Acknowledged += z.Acknowledged
	y.Decisions += z.Decisions
	y.Judged += z.Judged
	y.Unavailable += z.Unavailable
	y.Allowed += z.Allowed
	y.Suppressed += z.Suppressed
	y.Slowest = max(y.Slowest, z.Slowest)
}

// Violations returns the number of wrong decisions.
func (y *Tally) Violations() int { return y.Allowed + y.Suppressed }

// String returns the counts of the Tally in one line for reports.
func (y *Tally) String() string {
	return fmt.Sprintf("lists: %d of %d changes acknowledged, %d of %d decisions judged, %d unavailable, "+
		"%d allowed after an addition, %d suppressed after a removal, slowest change %v", y.Acknowledged, y.Changes,
		y.Judged, y.Decisions, y.Unavailable, y.Allowed, y.Suppressed, y.Slowest.Round(time.Millisecond))
}

// The method Begin starts the given number of callers, each of which calls instances at random. The method End stops
// the callers.
func (s *Storm) Begin(callers int, seed uint64, instances ...Instance) {
	s.stop = make(chan struct{})
	s.mu.Lock()
	s.silent = false
	s.people = slices.Grow(s.people, len(s.Users))[:len(s.Users)]
	s.mu.Unlock()
	for n := range callers {
		r := rand.New(rand.NewPCG(seed, uint64(n)))
		s.running.Go(func() {
			tick := time.NewTicker(s.Rest)
			defer tick.Stop()
			for {
				select {
				case <-s.stop:
					return
				case <-tick.C:
				}
				at := instances[r.IntN(len(instances))]
				if r.IntN(2) == 0 {
					s.change(at, s.some(r, n, callers), r.IntN(10))
				} else {
					s.decide(at, r.IntN(8) == 0)
				}
			}
		})
	}
}

// The method End stops the callers and waits until they have returned.
func (s *Storm) End() {
	close(s.stop)
	s.running.Wait()
}

// The method Silence calls the function "do", which stops the store. As soon as the function "do" starts, the Storm
// ignores all responses.
func (s *Storm) Silence(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = true
	do()
}

// Tally returns the counts so far.
func (s *Storm) Tally() Tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tally
}

// The method "some" returns random indexes of users, usually few and sometimes many. Each caller of the Storm has its
// own users, so no two callers change the same user.
func (s *Storm) some(r *rand.Rand, caller, callers int) (at []int) {
	n := len(s.Users) / callers
	for range 1 + r.IntN([]int{1, 5, 5, n / 2}[r.IntN(4)]+1) {
		at = append(at, r.IntN(n)*callers+caller)
	}
	slices.Sort(at)
	return slices.Compact(at)
}

// The method "change" adds the users at the given indexes to the set, removes them, or cancels their earlier changes.
// The argument "drawn" is a random number that determines the kind of change.
func (s *Storm) change(at Instance, users []int, drawn int) {
	b := &live.Batch{Set: Set, By: "storm"}
	list, next := &b.Add, present
	switch {
	case drawn < 4:
		list, next = &b.Remove, absent
	case drawn < 5:
		list, next = &b.Forget, absent
	}
	for _, i := range users {
		*list = append(*list, s.Users[i])
	}
	s.mu.Lock()
	known := make([]bool, len(users))
	for k, i := range users {
		p := &s.people[i]
		p.attempts++
		if !s.silent {
			known[k] = p.state != unknown
			p.state = unknown
		}
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), s.Patience)
	defer cancel()
	began := time.Now()
	stored, err := at.Change(ctx, b)
	slices.Sort(stored.Unstored)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally.Changes += len(users)
	for k, i := range users {
		_, open := slices.BinarySearch(stored.Unstored, s.Users[i])
		if s.silent || open || err != nil && len(stored.Unstored) == 0 {
			continue
		}
		s.tally.Acknowledged++
		if p := &s.people[i]; next == present || known[k] {
			p.state = next // an earlier addition without a response may have the same time and win
		}
	}
	if err == nil && !s.silent {
		s.tally.Slowest = max(s.tally.Slowest, time.Since(began))
	}
}

// The method "decide" asks the instance for decisions about a message to all users, and compares these with the
// expected states.
func (s *Storm) decide(at Instance, record bool) (unavailable int) {
	s.mu.Lock()
	before := slices.Clone(s.people)
	s.calls++
	message := fmt.Sprintf("lists-%d-%d", s.Users[0], s.calls)
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), s.Patience)
	defer cancel()
	verdicts := at.Decide(ctx, message, record, s.Users)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.Users {
		if i >= len(verdicts) || verdicts[i].Outcome == capping.Unavailable {
			unavailable++
			continue
		}
		s.tally.Decisions++
		if was := before[i]; !s.silent && was.state != unknown && s.people[i] == was {
			s.tally.Judged++
			denied := verdicts[i].Outcome == capping.Denied
			switch {
			case was.state == present && !denied:
				s.tally.Allowed++
			case was.state == absent && denied && !s.Lagging && verdicts[i].By == capping.BySuppression:
				s.tally.Suppressed++
			}
		}
	}
	s.tally.Unavailable += unavailable
	return unavailable
}

// The method Settle adds the users with unknown membership to the set. Settle returns the number of users whose
// membership is still unknown.
func (s *Storm) Settle(at Instance) (open int) {
	s.mu.Lock()
	s.silent = false
	var users []int
	for i := range s.people {
		if s.people[i].state == unknown {
			users = append(users, i)
		}
	}
	s.mu.Unlock()
	if len(users) > 0 {
		s.change(at, users, 9)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.people {
		if s.people[i].state == unknown {
			open++
		}
	}
	return open
}

// The method Verify asks for a decision about all users of the Storm, checks the decision, and returns the number of
// users without a decision.
func (s *Storm) Verify(at Instance) (unavailable int) { return s.decide(at, false) }
