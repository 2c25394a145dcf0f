//go:build storms

package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/messages"
	"capper/internal/testkit"
)

// decider is the store that a storm loads.
type decider interface {
	Filter(ctx context.Context, b *capping.Batch, verdicts []capping.Verdict) error
}

// storm is load from several deciders at once, with an oracle. The oracle sees only calls and their results, and
// reads all logs at the end.
type storm struct {
	deciders []decider
	limit    capping.Rule
	shadows  []capping.Rule // before it: one that would deny whoever got anything
	patience time.Duration  // deadline of every call
	tick     time.Duration  // of each of four callers: a call at most
	base     capping.UserID
	hot      int // users that everybody sends to: they reach their limit
	spared   spared
	kept     spared                         // nil: whose logs cannot have vanished; all
	kinds    []identity                     // every message id goes out as each of these
	before   map[capping.UserID]capping.Log // what was recorded before it
	torn     bool                           // slots' keys are on two nodes now and then
	imported bool                           // some users are imported sends of beside it

	fresh    atomic.Uint32
	messages atomic.Int64
	running  sync.WaitGroup
	rounds   [4]atomic.Int64 // calls of each caller that have ended
	stop     chan struct{}
	ended    sync.Once
	mu       sync.Mutex
	answers  []answer
	tally    tally
}

// spared reports whether no fault touches the user in calls to the decider. Such users must always be decided.
type spared func(d decider, user capping.UserID) bool

// answer is the result of one call.
type answer struct {
	send         identity
	users        []capping.UserID
	verdicts     []capping.Verdict
	began, ended time.Time
}

// tally holds the figures that a storm reports.
type tally struct {
	calls, decisions, grants, denials, unavailable, spoilt int
	slowest, overdue                                       time.Duration
	lastError                                              error
}

func newStorm(base capping.UserID, deciders ...decider) *storm {
	return &storm{
		deciders: deciders, limit: rolling(3, 24*time.Hour), patience: 1200 * time.Millisecond,
		tick: 50 * time.Millisecond,
		kinds: []identity{{}, {channel: 1}, {capping.Message{Namespace: "growth"}, 1},
			{capping.Message{Namespace: "growth"}, 255}},
		shadows: []capping.Rule{{Max: 1, Hold: 24 * 3_600_000, Shadow: true}},
		base:    base, hot: 300, stop: make(chan struct{}),
		spared: func(decider, capping.UserID) bool { return true },
	}
}

// begin starts the load. end stops the load and waits; it may be called again, so that a test can defer it and no
// load outlives a failed test.
func (s *storm) begin(seed uint64) {
	for i := range s.rounds {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		s.running.Add(1)
		go func() {
			defer s.running.Done()
			pace := time.NewTicker(s.tick)
			defer pace.Stop()
			for {
				select {
				case <-s.stop:
					return
				case <-pace.C:
					s.ask(s.deciders[rng.IntN(len(s.deciders))], s.send(), s.audience(rng))
					s.rounds[i].Add(1)
				}
			}
		}()
	}
}

func (s *storm) end() {
	s.ended.Do(func() { close(s.stop) })
	s.running.Wait()
}

// answered waits until the storm has results of the given number of further calls.
func (s *storm) answered(t testing.TB, calls int) {
	t.Helper()
	s.await(t, calls, "answers", func(y *tally) int { return y.calls })
}

// each waits until every caller has had answers to so many more calls. A caller whose call waits for something
// holds each up until the call's patience has ended.
func (s *storm) each(t testing.TB, calls int64) {
	t.Helper()
	var want [len(s.rounds)]int64
	for i := range s.rounds {
		want[i] = s.rounds[i].Load() + calls
	}
	require.Eventually(t, func() bool {
		for i := range s.rounds {
			if s.rounds[i].Load() < want[i] {
				return false
			}
		}
		return true
	}, 2*time.Minute, 2*time.Millisecond, "answers of every caller")
}

// leavesOpen waits until more users were left unavailable.
func (s *storm) leavesOpen(t testing.TB) {
	t.Helper()
	s.await(t, 1, "users left unavailable", func(y *tally) int { return y.unavailable })
}

// await waits until the figure of the tally has grown by more.
func (s *storm) await(t testing.TB, more int, what string, figure func(*tally) int) {
	t.Helper()
	now := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return figure(&s.tally)
	}
	want := now() + more
	require.Eventually(t, func() bool { return now() >= want }, 2*time.Minute, 2*time.Millisecond, what)
}

// send returns the next send, with its own message id.
func (s *storm) send() identity {
	n := s.messages.Add(1)
	next := s.kinds[int(n)%len(s.kinds)]
	next.message.ID = "storm-" + strconv.FormatUint(uint64(s.base), 10) + "-" + strconv.FormatInt(n/int64(len(s.kinds)),
		10)
	return next
}

// audience returns users that reach their limit and new users, enough of them that the message is counted.
func (s *storm) audience(rng *rand.Rand) []capping.UserID {
	var users []capping.UserID
	hot := s.hotUsers()
	for _, i := range rng.Perm(len(hot))[:20] {
		users = append(users, hot[i])
	}
	if s.imported {
		for _, i := range rng.Perm(importedUsers)[:10] {
			users = append(users, s.importedUser(i))
		}
	}
	for len(users) < capping.BulkUsers {
		users = append(users, person(s.base+1_000_000+capping.UserID(s.fresh.Add(1)*11)))
	}
	return users
}

// hotUsers returns the users in everybody's sends.
func (s *storm) hotUsers() []capping.UserID {
	users := make([]capping.UserID, s.hot)
	for i := range users {
		users[i] = person(s.base + capping.UserID(i*37))
	}
	return users
}

// ask runs a filter call and stores its result.
func (s *storm) ask(d decider, which identity, users []capping.UserID) (open []capping.UserID) {
	ctx, cancel := context.WithTimeout(context.Background(), s.patience)
	defer cancel()
	verdicts := make([]capping.Verdict, len(users))
	began := time.Now()
	err := d.Filter(ctx, which.batch(users, append(s.shadows[:len(s.shadows):len(s.shadows)], s.limit)...), verdicts)
	ended := time.Now()
	took := ended.Sub(began)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = append(s.answers, answer{which, users, verdicts, began, ended})
	s.tally.calls++
	s.tally.decisions += len(users)
	s.tally.slowest = max(s.tally.slowest, took)
	s.tally.overdue = max(s.tally.overdue, took-s.patience)
	if err != nil {
		s.tally.lastError = err
	}
	for i, v := range verdicts {
		switch v.Outcome {
		case capping.Unavailable:
			open = append(open, users[i])
			s.tally.unavailable++
			if s.spared(d, users[i]) {
				s.tally.spoilt++
			}
		case capping.Denied:
			s.tally.denials++
		default:
			s.tally.grants++
		}
	}
	return open
}

// settle retries with the same message id for all unavailable users until every user is decided.
func (s *storm) settle(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	asked := slices.Clone(s.answers)
	s.mu.Unlock()
	for i, a := range asked {
		var open []capping.UserID
		for j, v := range a.verdicts {
			if v.Outcome == capping.Unavailable {
				open = append(open, a.users[j])
			}
		}
		d := s.deciders[i%len(s.deciders)]
		if store, ok := d.(*Store); ok { // small calls are of more messages than a store takes up
			store.memory.Keep(a.send.batch(a.users))
		}
		if len(open) == 0 {
			continue
		}
		untilHealed(t, "users are still unavailable", func() (bool, error) {
			open = s.ask(d, a.send, open)
			return len(open) == 0, s.tally.lastError
		})
	}
}

// untilHealed repeats the call until it succeeds. Each call has its own deadline, because the number of calls says
// nothing about the cluster.
func untilHealed(t testing.TB, what string, ask func() (done bool, last error)) {
	t.Helper()
	deadline := time.Now().Add(testkit.Patience)
	for {
		done, last := ask()
		if done {
			return
		}
		require.True(t, time.Now().Before(deadline), "%s after healing: %v", what, last)
	}
}

// violations counts the broken promises by kind.
type violations struct{ over, doubled, missing, deniedButRecorded, misjudged, miscounted int }

func (v violations) total() int {
	return v.over + v.doubled + v.missing + v.deniedButRecorded + v.misjudged + v.miscounted
}

// verify judges the logs of the store, and compares its counts with them.
func (s *storm) verify(t testing.TB, store *Store) violations {
	t.Helper()
	logs := s.logsOf(t, store)
	v := s.judge(logs)
	if s.kept == nil { // counts vanish with logs
		v.miscounted = s.miscounted(t, store, logs)
	}
	return v
}

// miscounted returns how many messages have another count than sends in the logs. No send was released, so the count
// is the number of recorded sends.
func (s *storm) miscounted(t testing.TB, store *Store, logs map[capping.UserID]map[identity]int) (n int) {
	t.Helper()
	recorded := map[identity]int64{}
	for _, a := range s.answers {
		recorded[a.send] += 0
	}
	for _, log := range logs {
		for send, n := range log {
			recorded[send] += int64(n)
		}
	}
	for send, want := range recorded {
		var campaigns []messages.Counts
		require.NoError(t, testkit.InTime(func() (err error) {
			campaigns, err = store.MessageCounts(t.Context(), send.message)
			return err
		}))
		var got messages.Sends
		for _, one := range campaigns {
			if one.Channel == send.channel {
				got = one.Sends
			}
		}
		// see "Counts by message" in doc.go
		bound := s.torn && got.AtLeast && got.Released == 0 && got.Recorded <= want
		if want := (messages.Sends{Recorded: want}); got != want && !bound {
			t.Logf("%v: counted %+v, in the logs are %+v", send, got, want)
			n++
		}
	}
	return n
}

// judge compares all results with the logs, which hold the number of entries of each send for each user.
func (s *storm) judge(logs map[capping.UserID]map[identity]int) (v violations) {
	type send struct {
		user  capping.UserID
		which identity
	}
	last := map[send]capping.Outcome{}
	granted := map[capping.UserID]int{}
	for _, a := range s.answers {
		v.misjudged += s.misjudged(a, logs)
		for i, verdict := range a.verdicts {
			key := send{a.users[i], a.send}
			was := last[key]
			if was != capping.Allowed {
				last[key] = min(verdict.Outcome, capping.Denied)
				if verdict.Outcome == capping.Replayed {
					last[key] = capping.Allowed
				}
			}
			if was != capping.Allowed && last[key] == capping.Allowed {
				granted[key.user]++
			}
		}
	}
	for key, outcome := range last {
		switch n := logs[key.user][key.which]; {
		case outcome == capping.Allowed && n == 0 && !s.lost(key.user):
			v.missing++
		case outcome == capping.Denied && n > 0:
			v.deniedButRecorded++
		}
	}
	for user, log := range logs {
		total := 0
		for _, n := range log {
			total += n
			if n > 1 {
				v.doubled++
			}
		}
		if total > s.limit.Max || granted[user] > s.limit.Max && !s.lost(user) {
			v.over++
		}
	}
	return v
}

// misjudged returns how many users the result wrongly names for the shadow rule: they were denied, or had received no
// other send, also before the storm.
func (s *storm) misjudged(a answer, logs map[capping.UserID]map[identity]int) (n int) {
	for i, verdict := range a.verdicts {
		if verdict.Shadow != 0 && !s.lost(a.users[i]) &&
			(verdict.Outcome != capping.Allowed || verdict.Shadow != 1 ||
				len(logs[a.users[i]])+s.before[a.users[i]].Len() < 2) {
			n++
		}
	}
	return n
}

// logsOf reads all logs of the store's namespace from the masters.
func (s *storm) logsOf(t testing.TB, store *Store) map[capping.UserID]map[identity]int {
	t.Helper()
	names := s.messageNames()
	logs := map[capping.UserID]map[identity]int{}
	for user, log := range readLogs(t, store) {
		logs[user] = map[identity]int{}
		for _, e := range log.Entries() {
			if message, ok := names[e.Token]; ok {
				logs[user][identity{message, e.Channel}]++
			}
		}
	}
	return logs
}

func (s *storm) messageNames() map[capping.Token]capping.Message {
	names := map[capping.Token]capping.Message{}
	for _, a := range s.answers {
		names[a.send.message.Token()] = a.send.message
	}
	return names
}

func (y tally) String() string {
	return fmt.Sprintf("%d calls, %d decisions, %d granted, %d denied, %d unavailable, slowest answer %v",
		y.calls, y.decisions, y.grants, y.denials, y.unavailable, y.slowest.Round(time.Millisecond))
}
