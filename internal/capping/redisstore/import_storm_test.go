//go:build storms

package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/messages"
	"capper/internal/testkit"
)

// importStorm is a set of callers that import sends beside a storm, to users of the storm's calls and to others. Its
// oracle knows only the promises to importers.
type importStorm struct {
	*storm
	stores  []*Store
	running sync.WaitGroup

	mu    sync.Mutex
	calls []importCall
}

// importCall is an import of one message that was sent elsewhere, with its result.
type importCall struct {
	merge        *capping.Merge
	merged       []capping.Merged
	began, ended time.Time
}

// message returns the message of all the import's sends.
func (c *importCall) message() capping.Message { return c.merge.Messages[0] }

// importedUsers is the number of imported users whom calls ask for too.
const importedUsers = 200

func (s *storm) importedUser(i int) capping.UserID {
	return person(s.base + 10_000_000 + capping.UserID(i*37))
}

// beginImports starts two importing callers, which end with the storm.
func (f *field) beginImports(seed uint64) *importStorm {
	p := &importStorm{storm: f.storming, stores: f.stores}
	for caller := range 2 {
		rng := rand.New(rand.NewPCG(seed, uint64(100+caller)))
		p.running.Go(func() {
			pace := time.NewTicker(50 * time.Millisecond)
			defer pace.Stop()
			for n := 0; ; n++ {
				select {
				case <-p.stop:
					return
				case <-pace.C:
					p.ask(p.stores[rng.IntN(len(p.stores))], p.next(rng, fmt.Sprintf("import-%d-%d-%d", p.base, caller,
						n)))
				}
			}
		})
	}
	return p
}

// next returns a new message or an earlier one: importers retry imports with an unknown result.
func (p *importStorm) next(rng *rand.Rand, id string) *capping.Merge {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.calls) > 0 && rng.IntN(4) == 0 {
		return p.calls[rng.IntN(len(p.calls))].merge
	}
	message := capping.Message{ID: id}
	var sent []capping.Sent
	add := func(user capping.UserID) {
		ago := time.Minute + time.Duration(rng.Int64N(int64(20*time.Hour)))
		at := capping.InstantOf(time.Now().Add(-ago))
		sent = append(sent, capping.Sent{User: user, Entry: capping.Entry{At: at, Channel: 1, Token: message.Token()}})
	}
	for _, i := range rng.Perm(importedUsers)[:10] {
		add(p.importedUser(i))
	}
	for range 20 {
		add(person(p.base + 20_000_000 + capping.UserID(p.fresh.Add(1)*11)))
	}
	m := capping.MergeOf(sent)
	m.Messages, m.Retention, m.Counted = []capping.Message{message}, 7*24*time.Hour, true
	return m
}

// ask runs an import and stores its result.
func (p *importStorm) ask(s *Store, m *capping.Merge) importCall {
	ctx, cancel := context.WithTimeout(context.Background(), p.patience)
	defer cancel()
	c := importCall{merge: m, merged: make([]capping.Merged, len(m.Users)), began: time.Now()}
	err := s.Merge(ctx, m, c.merged)
	c.ended = time.Now()
	p.mu.Lock()
	p.calls = append(p.calls, c)
	p.mu.Unlock()
	p.storm.mu.Lock()
	defer p.storm.mu.Unlock()
	for i, user := range m.Users {
		if !c.merged[i].Done && p.spared(s, user) {
			p.tally.spoilt++
			p.tally.lastError = err
		}
	}
	return c
}

// settle retries all imports until they succeed, and then once more.
func (p *importStorm) settle(t testing.TB) {
	t.Helper()
	p.running.Wait()
	for _, m := range p.merges() {
		for done := range 2 {
			untilHealed(t, "an import is not done", func() (bool, error) {
				c := p.ask(p.stores[done], m)
				return !undone(c.merged), p.tally.lastError
			})
		}
	}
}

func undone(merged []capping.Merged) bool {
	for _, one := range merged {
		if !one.Done {
			return true
		}
	}
	return false
}

// merges returns the distinct imports.
func (p *importStorm) merges() (merges []*capping.Merge) {
	known := map[*capping.Merge]bool{}
	for _, c := range p.calls {
		if !known[c.merge] {
			merges = append(merges, c.merge)
		}
		known[c.merge] = true
	}
	return merges
}

// tellStorm reports the imported sends of its users to the storm.
func (p *importStorm) tellStorm() {
	p.before = map[capping.UserID]capping.Log{}
	for _, m := range p.merges() {
		for i, user := range m.Users {
			p.before[user] = append(p.before[user], m.Logs[i]...)
		}
	}
}

// faults returns all broken promises.
func (p *importStorm) faults(t testing.TB, store *Store) []string {
	t.Helper()
	p.tellStorm()
	return append(append(p.logFaults(readLogs(t, store)), p.answerFaults()...), p.countFaults(t, store)...)
}

// logFaults checks that each imported send is in the log once, at its own time.
func (p *importStorm) logFaults(logs map[capping.UserID]capping.Log) (faults []string) {
	for _, m := range p.merges() {
		for i, user := range m.Users {
			want, found := m.Logs[i].Entry(0), 0
			for _, e := range logs[user].Entries() {
				if e.Token != want.Token {
					continue
				}
				if found++; e != want {
					faults = append(faults, fmt.Sprintf("user %d: %v was imported as %v", user, want, e))
				}
			}
			if found != 1 {
				faults = append(faults, fmt.Sprintf("user %d: %s is in the log %d times", user, m.Messages[0].ID,
					found))
			}
		}
	}
	return faults
}

// answerFaults checks that an existing send is not added again, and that no user exceeds a limit that counts sends
// imported before the call.
func (p *importStorm) answerFaults() (faults []string) {
	type send struct {
		user capping.UserID
		of   *capping.Merge
	}
	done, by := map[send]time.Time{}, map[capping.UserID][]time.Time{}
	for _, c := range p.calls { // in the order in which they ended
		for i, user := range c.merge.Users {
			at, known := done[send{user, c.merge}]
			switch {
			case known && at.Before(c.began) && c.merged[i].Added > 0:
				faults = append(faults, fmt.Sprintf("user %d: %s was added again", user, c.message().ID))
			case !known && c.merged[i].Done:
				done[send{user, c.merge}] = c.ended
				by[user] = append(by[user], c.ended)
			}
		}
	}
	for _, a := range p.answers {
		for i, user := range a.users {
			if before := p.had(by[user], user, &a); a.verdicts[i].Outcome == capping.Allowed && before >= p.limit.Max {
				faults = append(faults, fmt.Sprintf("user %d: was allowed %v after %d sends", user, a.send, before))
			}
		}
	}
	return faults
}

// had returns how many sends the user is known to have received before the call began.
func (p *importStorm) had(imported []time.Time, user capping.UserID, a *answer) (n int) {
	for _, at := range imported {
		if at.Before(a.began) {
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return n + len(p.grants(user, a))
}

// grants returns the user's other allowed sends that were answered by then.
func (p *importStorm) grants(user capping.UserID, by *answer) map[identity]bool {
	granted := map[identity]bool{}
	for _, a := range p.answers {
		if a.send == by.send || !a.ended.Before(by.began) {
			continue
		}
		for i, other := range a.users {
			if o := a.verdicts[i].Outcome; other == user && (o == capping.Allowed || o == capping.Replayed) {
				granted[a.send] = true
			}
		}
	}
	return granted
}

// countFaults checks that an imported message is counted as often as it has sends.
func (p *importStorm) countFaults(t testing.TB, store *Store) (faults []string) {
	t.Helper()
	for _, m := range p.merges() {
		var campaigns []messages.Counts
		var err error
		testkit.Eventually(t, func() bool { // a busy machine may need a second try
			campaigns, err = store.MessageCounts(t.Context(), m.Messages[0])
			return err == nil
		}, "the counts are read: %v", &err)
		got, atLeast := int64(0), false
		for _, one := range campaigns {
			got, atLeast = got+one.Sends.Recorded, atLeast || one.AtLeast
		}
		if want := int64(len(m.Users)); got != want && !(p.torn && atLeast && got < want) {
			faults = append(faults, fmt.Sprintf("%s: counted %d sends, there are %d", m.Messages[0].ID, got, want))
		}
	}
	return faults
}

func (p *importStorm) String() string {
	return fmt.Sprintf("%d imports of %d messages", len(p.calls), len(p.merges()))
}

func TestImportOracleBites(t *testing.T) {
	t.Parallel()
	message := capping.Message{ID: "elsewhere"}
	entry := capping.Entry{At: 1000, Channel: 1, Token: message.Token()}
	m := capping.MergeOf([]capping.Sent{{User: 7, Entry: entry}})
	m.Messages = []capping.Message{message}
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	imported := func(began, ended, added int) importCall {
		return importCall{m, []capping.Merged{capping.MergedOf(added)}, at(began), at(ended)}
	}
	allowed := func(message string, began, ended int) answer {
		return answer{identity{message: capping.Message{ID: message}}, []capping.UserID{7},
			[]capping.Verdict{{Outcome: capping.Allowed}}, at(began), at(ended)}
	}
	moved := entry
	moved.At++
	once := func(e capping.Entry) capping.Log { return capping.Log(nil).Record(nil, e, 0) }
	for name, c := range map[string]struct {
		calls   []importCall
		answers []answer
		log     capping.Log
		fault   string
	}{
		"nothing": {calls: []importCall{imported(1, 2, 1), imported(3, 4, 0)},
			answers: []answer{allowed("a", 1, 2), allowed("b", 1, 2)}, log: once(entry)},
		"missing": {calls: []importCall{imported(1, 2, 1)},
			fault: "user 7: elsewhere is in the log 0 times"},
		"twice": {calls: []importCall{imported(1, 2, 1)}, log: append(once(entry), once(entry)...),
			fault: "user 7: elsewhere is in the log 2 times"},
		"at another time": {calls: []importCall{imported(1, 2, 1)}, log: once(moved), fault: "was imported as"},
		"added again": {calls: []importCall{imported(1, 2, 1), imported(3, 4, 1)}, log: once(entry),
			fault: "user 7: elsewhere was added again"},
		"beside it, at once": {calls: []importCall{imported(1, 3, 1), imported(2, 4, 1)}, log: once(entry)},
		"beyond the limit": {calls: []importCall{imported(1, 2, 1)}, answers: []answer{allowed("a", 1, 2),
			allowed("b", 3, 4)}, log: once(entry), fault: "user 7: was allowed"},
		"beside what is judged": {calls: []importCall{imported(1, 4, 1)}, answers: []answer{allowed("a", 1, 2),
			allowed("b", 3, 5)}, log: once(entry)},
	} {
		s := newStorm(0)
		s.limit, s.answers = rolling(2, time.Hour), c.answers
		p := &importStorm{storm: s, calls: c.calls}
		found := append(p.logFaults(map[capping.UserID]capping.Log{7: c.log}), p.answerFaults()...)
		if c.fault == "" {
			require.Empty(t, found, name)
			continue
		}
		require.Len(t, found, 1, name)
		require.Contains(t, found[0], c.fault, name)
	}
}
