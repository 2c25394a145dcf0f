package pebblestore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
	"capper/internal/live/livetest"
	"capper/internal/pacing"
	"capper/internal/pacing/pacingtest"
	"capper/internal/testkit"
)

// target is the store under load: a store in this process or in another one.
type target interface {
	Filter(ctx context.Context, b *capping.Batch, verdicts []capping.Verdict) error
	Release(
		ctx context.Context, token capping.Token, channel capping.Channel, users []capping.UserID,
		released []capping.Released,
	) error
	Merge(ctx context.Context, m *capping.Merge, merged []capping.Merged) error
	pacing.Store
	HasRequest(ctx context.Context, group string, r pacing.Request) (bool, error)
	livetest.Instance
}

// local is a store in this process with a capper.
type local struct {
	*Store
	capper *capping.Capper
}

func newLocal(s *Store) local { return local{s, livetest.NewCapper(s, 7*24*time.Hour, s.clock)} }

// Decide decides with the capper.
func (l local) Decide(ctx context.Context, message string, record bool, users []capping.UserID) []capping.Verdict {
	return livetest.Decide(ctx, l.capper, message, record, users)
}

// storm is load on a store from several callers, with an oracle that sees only requests and replies and
// reads all logs at the end. Callers send to common users, who reach their limit, to users with imported
// sends, and to new users. A third of the sends to new users is released.
type storm struct {
	base   capping.UserID
	seed   uint64
	limit  capping.Rule
	pacers []pacing.Target // the last one is a ledger
	shared *pacing.Policy  // pacers with shares and per key
	lists  *livetest.Storm
	wide   bool // the store is one for images, which stand for the users

	running sync.WaitGroup
	stop    chan struct{}

	mu     sync.Mutex
	fresh  capping.UserID // the next new user
	sends  int
	silent bool // replies are ignored from now on
	calls  []*sending
	merges []*importing
	oracle *pacingtest.Oracle // checks the granted permits
	cut    *pacingtest.Oracle // a copy of oracle at the time when replies were first ignored
	tally  tally
}

// sending is a message to some users, with the result for each user.
type sending struct {
	batch    *capping.Batch
	verdicts []capping.Verdict
	released map[capping.UserID]capping.Released // users to release; the zero value means unknown
	unsure   map[capping.UserID]bool             // a release of the user had no reply
	imported map[capping.UserID]int              // number of imported sends before the request
}

// importing is an import of a message.
type importing struct {
	merge *capping.Merge
	done  bool
}

// The users of a storm: common users, users with imported sends, and new users.
const (
	hotUsers      = 300
	importedUsers = 200
	importedBase  = 10_000_000
	freshBase     = 20_000_000
)

// tally holds the numbers that a storm reports.
type tally struct {
	calls, decisions, grants, denials, unavailable, released, imports int
	slowest                                                           time.Duration
}

func (y *tally) add(z tally) {
	y.calls += z.calls
	y.decisions += z.decisions
	y.grants += z.grants
	y.denials += z.denials
	y.unavailable += z.unavailable
	y.released += z.released
	y.imports += z.imports
	y.slowest = max(y.slowest, z.slowest)
}

func (y tally) String() string {
	return fmt.Sprintf("%d calls, %d decisions, %d granted, %d denied, %d unavailable, slowest answer %v, "+
		"%d released, %d imports",
		y.calls, y.decisions, y.grants, y.denials, y.unavailable, y.slowest.Round(time.Millisecond), y.released,
		y.imports)
}

// newStorm returns load on users from base on. wide says that the store is one for images.
func newStorm(base capping.UserID, seed uint64, wide bool) *storm {
	ledger := pacingtest.Ledger()
	ledger.Pacer = pacingtest.Name()
	return &storm{
		wide: wide,
		base: base, seed: seed, limit: capping.Rule{Max: 3, Hold: (24 * time.Hour).Milliseconds()},
		pacers: []pacing.Target{
			{Pacer: pacingtest.Name(), Limits: []pacing.Limit{{Max: 100, Window: time.Second}}},
			{Pacer: pacingtest.Name(), Limits: []pacing.Limit{{Max: 1, Window: 4 * time.Millisecond}}},
			ledger,
		},
		shared: pacingtest.CallersPolicy(),
		lists:  &livetest.Storm{Users: listUsers(base, wide), Patience: patience, Rest: 5 * time.Millisecond},
		fresh:  base + freshBase, oracle: pacingtest.NewOracle(),
	}
}

// listUsers returns the users of a storm's lists, whose logs the storm does not check.
func listUsers(base capping.UserID, wide bool) []capping.UserID {
	users := make([]capping.UserID, 2000)
	for i := range users {
		users[i] = 3_000_000_000 + base/10 + capping.UserID(i*37)
	}
	if wide {
		users = imagesOf(users)
		slices.Sort(users)
	}
	return users
}

// patience is the timeout of every call of a storm.
const patience = 1200 * time.Millisecond

// begin starts the load on the store. The method end stops the load and waits.
func (s *storm) begin(store target) {
	if s.wide {
		store = imageTarget{store}
	}
	s.stop, s.silent = make(chan struct{}), false
	for i := range uint64(4) {
		rng := rand.New(rand.NewPCG(s.seed, i))
		s.running.Go(func() {
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-s.stop:
					return
				case <-tick.C:
					s.callOnce(store, rng)
				}
			}
		})
	}
	s.lists.Begin(2, s.seed, store)
	s.seed++
}

func (s *storm) end() {
	close(s.stop)
	s.running.Wait()
	s.lists.End()
}

// callOnce sends and releases for some users, or imports.
func (s *storm) callOnce(store target, rng *rand.Rand) {
	if rng.IntN(8) == 0 {
		s.importSends(store, s.nextImport(rng))
		return
	}
	c := s.nextSend(rng)
	s.send(store, c)
	if len(c.released) > 0 {
		s.release(store, c)
	}
}

// nextSend returns a message to some users of each kind.
func (s *storm) nextSend(rng *rand.Rand) *sending {
	var users []capping.UserID
	for _, i := range rng.Perm(hotUsers)[:20] {
		users = append(users, s.base+capping.UserID(i*37))
	}
	for _, i := range rng.Perm(importedUsers)[:10] {
		users = append(users, s.importedUser(i))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sends++
	c := &sending{
		released: map[capping.UserID]capping.Released{}, unsure: map[capping.UserID]bool{},
		imported: map[capping.UserID]int{},
	}
	for i := range capping.BulkUsers - len(users) + rng.IntN(1<<rng.IntN(9)) { // enough for the message to count
		s.fresh += 11
		users = append(users, s.fresh)
		if i%3 == 0 {
			c.released[s.fresh] = capping.ReleaseUnavailable
		}
	}
	message := capping.Message{
		ID: fmt.Sprintf("storm-%d-%d", s.base, s.sends), Namespace: []string{"", "growth"}[s.sends%2],
	}
	c.batch = &capping.Batch{
		Message: message, Token: message.Token(), Channel: capping.Channel(s.sends % 3),
		Users: users, Groups: make([]uint8, len(users)),
		Rules:  [][]capping.Rule{{{Max: 1, Hold: s.limit.Hold, Shadow: true}, s.limit}},
		Record: true, Retention: 7 * 24 * time.Hour,
	}
	c.verdicts = make([]capping.Verdict, len(users))
	s.calls = append(s.calls, c)
	for _, m := range s.merges {
		for _, user := range m.merge.Users {
			if m.done {
				c.imported[user]++
			}
		}
	}
	return c
}

func (s *storm) importedUser(i int) capping.UserID {
	return s.base + importedBase + capping.UserID(i*37)
}

// send filters the undecided users and records the replies.
func (s *storm) send(store target, c *sending) {
	open := s.undecided(c)
	if len(open) == 0 {
		return
	}
	b := *c.batch
	b.Users, b.Groups = nil, make([]uint8, len(open))
	for _, i := range open {
		b.Users = append(b.Users, c.batch.Users[i])
	}
	verdicts := make([]capping.Verdict, len(open))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	began := time.Now()
	_ = store.Filter(ctx, &b, verdicts) // the verdicts say who was not decided
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally.calls++
	s.tally.decisions += len(open)
	s.tally.slowest = max(s.tally.slowest, time.Since(began))
	for k, i := range open {
		if s.silent {
			verdicts[k] = capping.Verdict{}
		}
		c.verdicts[i] = verdicts[k]
		switch verdicts[k].Outcome {
		case capping.Unavailable:
			s.tally.unavailable++
		case capping.Denied:
			s.tally.denials++
		default:
			s.tally.grants++
		}
	}
}

// undecided returns the indexes of the users without a verdict.
func (s *storm) undecided(c *sending) (open []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, v := range c.verdicts {
		if v.Outcome == capping.Unavailable {
			open = append(open, i)
		}
	}
	return open
}

// release releases the allowed sends that must be released and records the replies. release returns the
// number of users whose release is still unknown.
func (s *storm) release(store target, c *sending) (open int) {
	var users []capping.UserID
	s.mu.Lock()
	for i, user := range c.batch.Users {
		result, wanted := c.released[user]
		if hasSend(c.verdicts[i]) && wanted && result == capping.ReleaseUnavailable {
			users = append(users, user)
		}
	}
	s.mu.Unlock()
	if len(users) == 0 {
		return 0
	}
	released := make([]capping.Released, len(users))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = store.Release(ctx, c.batch.Token, c.batch.Channel, users, released) // results say which are unknown
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, user := range users {
		switch {
		case s.silent || released[i] == capping.ReleaseUnavailable:
			c.unsure[user] = true
			open++
		default:
			c.released[user] = released[i]
			s.tally.released++
		}
	}
	return open
}

// hasSend reports whether the verdict says that the user has the send.
func hasSend(v capping.Verdict) bool {
	return v.Outcome == capping.Allowed || v.Outcome == capping.Replayed
}

// nextImport returns a new message to import, or an earlier one.
func (s *storm) nextImport(rng *rand.Rand) *importing {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.merges) > 0 && rng.IntN(4) == 0 {
		return s.merges[rng.IntN(len(s.merges))]
	}
	message := capping.Message{ID: fmt.Sprintf("import-%d-%d", s.base, len(s.merges))}
	var sent []capping.Sent
	for _, i := range rng.Perm(importedUsers)[:10] {
		at := capping.InstantOf(time.Now().Add(-time.Minute - time.Duration(rng.Int64N(int64(20*time.Hour)))))
		entry := capping.Entry{At: at, Channel: 1, Token: message.Token()}
		sent = append(sent, capping.Sent{User: s.importedUser(i), Entry: entry})
	}
	m := capping.MergeOf(sent)
	m.Messages, m.Retention, m.Counted = []capping.Message{message}, 7*24*time.Hour, true
	s.merges = append(s.merges, &importing{merge: m})
	return s.merges[len(s.merges)-1]
}

// importSends imports sends and records the reply.
func (s *storm) importSends(store target, m *importing) {
	merged := make([]capping.Merged, len(m.merge.Users))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := store.Merge(ctx, m.merge, merged)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally.imports++
	if err == nil && !s.silent && !slices.ContainsFunc(merged, func(one capping.Merged) bool { return !one.Done }) {
		m.done = true
	}
}

// silence ends the store with do. Replies during and after do are ignored.
func (s *storm) silence(do func()) {
	s.lists.Silence(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.silent, s.cut = true, s.oracle.CloneBefore(do)
	})
}

// answered waits until the storm has received replies to the given number of further calls.
func (s *storm) answered(t testing.TB, calls int) {
	t.Helper()
	s.await(t, calls, func(y *tally) int { return y.calls })
}

// leavesOpen waits until further users are unavailable.
func (s *storm) leavesOpen(t testing.TB) {
	t.Helper()
	s.await(t, 1, func(y *tally) int { return y.unavailable })
}

func (s *storm) await(t testing.TB, more int, figure func(*tally) int) {
	t.Helper()
	now := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return figure(&s.tally)
	}
	want := now() + more
	testkit.Eventually(t, func() bool { return now() >= want })
}

// settle retries the messages of all unavailable users until every user is decided. settle also retries
// releases and imports.
func (s *storm) settle(t testing.TB, store *Store) {
	t.Helper()
	s.silent = false
	here := target(newLocal(store))
	if s.wide {
		here = imageTarget{here}
	}
	for _, c := range s.calls {
		store.memory.Keep(c.batch) // small calls have more messages than a store remembers
		testkit.Eventually(t, func() bool {
			s.send(here, c)
			return len(s.undecided(c)) == 0
		}, "users are still unavailable")
		testkit.Eventually(t, func() bool { return s.release(here, c) == 0 }, "releases are still unavailable")
	}
	for _, m := range s.merges {
		testkit.Eventually(t, func() bool { s.importSends(here, m); return m.done }, "an import is not done")
		s.importSends(here, m) // a repetition adds nothing
	}
	testkit.Eventually(t, func() bool { return s.lists.Settle(here) == 0 }, "changes to sets are not stored")
}

// numberOf returns the number of a user in the store.
func (s *storm) numberOf(user capping.UserID) capping.UserID {
	if s.wide {
		return numberOf(user)
	}
	return user
}

// violations holds the numbers of broken promises.
type violations struct {
	over, doubled, missing, deniedButRecorded, misjudged, miscounted, releasedButRecorded int

	unheeded int // decisions without an acknowledged change to a set
}

func (v violations) total() int {
	return v.over + v.doubled + v.missing + v.deniedButRecorded + v.misjudged + v.miscounted + v.releasedButRecorded +
		v.unheeded
}

func (v *violations) add(w violations) {
	v.over += w.over
	v.doubled += w.doubled
	v.missing += w.missing
	v.deniedButRecorded += w.deniedButRecorded
	v.misjudged += w.misjudged
	v.miscounted += w.miscounted
	v.releasedButRecorded += w.releasedButRecorded
	v.unheeded += w.unheeded
}

// logs maps each user's sends to their times in the user's log.
type logs map[capping.UserID]map[idText][]capping.Instant

// logsOf reads the logs of the storm's users.
func (s *storm) logsOf(t testing.TB, store *Store) logs {
	t.Helper()
	it, err := store.db.NewIter(&pebble.IterOptions{
		LowerBound: []byte{database.KeyLog}, UpperBound: []byte{database.KeyLog + 1},
	})
	require.NoError(t, err)
	found := logs{}
	for ok := it.First(); ok; ok = it.Next() {
		user, ok := store.db.UserOf(it.Key())
		require.True(t, ok)
		if user = s.numberOf(user); user < s.base || user >= s.base+100_000_000 {
			continue
		}
		log, _, err := decodeLog(it.Value())
		require.NoError(t, err)
		found[user] = map[idText][]capping.Instant{}
		for _, e := range log.Entries() {
			at := idText{e.Token, e.Channel}
			found[user][at] = append(found[user][at], e.At)
		}
	}
	require.NoError(t, it.Close())
	return found
}

// verify checks the logs of the store, and that the counts equal the logs.
func (s *storm) verify(t testing.TB, store *Store) violations {
	t.Helper()
	found := s.logsOf(t, store)
	v := s.judge(found)
	counts := map[capping.Message]int64{}
	for _, c := range s.calls {
		counts[c.batch.Message] = 0
		for _, user := range c.batch.Users {
			counts[c.batch.Message] += int64(len(found[user][idText{c.batch.Token, c.batch.Channel}]))
		}
	}
	for _, m := range s.merges {
		counts[m.merge.Messages[0]] = int64(len(m.merge.Users))
	}
	for message, want := range counts {
		campaigns, err := store.MessageCounts(t.Context(), message)
		require.NoError(t, err)
		for _, c := range campaigns {
			want -= c.Recorded - c.Released
		}
		if want != 0 {
			v.miscounted++
		}
	}
	here := newLocal(store)
	testkit.Eventually(t, func() bool { return s.lists.Verify(here) == 0 }, "users of sets are still unavailable")
	tally := s.lists.Tally()
	v.unheeded = tally.Violations()
	return v
}

// judge compares all replies with the logs.
func (s *storm) judge(found logs) (v violations) {
	imports := map[idText]bool{}
	for _, m := range s.merges {
		at := idText{m.merge.Messages[0].Token(), 1}
		imports[at] = true
		for i, user := range m.merge.Users {
			if recorded := found[user][at]; !slices.Contains(recorded, m.merge.Logs[i].Entry(0).At) {
				v.missing++
			}
		}
	}
	granted := map[capping.UserID]int{}
	for _, c := range s.calls {
		for i, user := range c.batch.Users {
			s.judgeAnswer(&v, c, i, found[user])
			if _, released := c.released[user]; hasSend(c.verdicts[i]) && !released {
				granted[user]++
			}
		}
	}
	for user, log := range found {
		recorded := 0
		for at, times := range log {
			if len(times) > 1 {
				v.doubled++
			}
			if !imports[at] {
				recorded += len(times)
			}
		}
		if max(recorded, granted[user]) > s.limit.Max {
			v.over++
		}
	}
	return v
}

// judgeAnswer compares the reply for one user with the user's log.
func (s *storm) judgeAnswer(v *violations, c *sending, i int, log map[idText][]capping.Instant) {
	user, verdict := c.batch.Users[i], c.verdicts[i]
	recorded := len(log[idText{c.batch.Token, c.batch.Channel}]) > 0
	result, released := c.released[user]
	switch {
	case !hasSend(verdict):
		if recorded {
			v.deniedButRecorded++
		}
	case released && recorded:
		v.releasedButRecorded++
	case released && result == capping.ReleaseAbsent && !c.unsure[user], !released && !recorded:
		v.missing++
	}
	if verdict.Outcome == capping.Allowed && c.imported[user] >= s.limit.Max {
		v.over++
	}
	if verdict.Shadow != 0 && (verdict.Outcome != capping.Allowed || verdict.Shadow != 1 || len(log) < 2) {
		v.misjudged++
	}
}
