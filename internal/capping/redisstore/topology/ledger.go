package topology

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Breach is that a server did what drops logs, so that those of a partition may not be whole. It stands
// until an operator has accepted it.
type Breach struct {
	Reason   string    `json:"reason"` // Evicting, Evicted or AppendOnly
	Node     string    `json:"node"`
	What     string    `json:"what"`
	Since    time.Time `json:"since"`
	Evicted  int64     `json:"evicted,omitempty"` // keys, by a run of the server since it was accepted last
	Accepted time.Time `json:"accepted,omitzero"` // zero: nobody did
	Why      string    `json:"why,omitempty"`     // the operator's reason
	At       int64     `json:"at"`                // ms: a later word about the partition goes before an earlier one
}

// Reasons of breaches, as metrics label them.
const (
	evicting   = "policy"      // the server's maxmemory-policy evicts
	Evicted    = "evicted"     // evicted_keys moved since the store began
	appendOnly = "append_only" // the append-only file is off
)

// Open reports whether nobody has accepted the breach.
func (b *Breach) Open() bool { return b.Accepted.IsZero() }

// replaces reports whether the breach is what holds, rather than one known of the same partition, or nil. An acceptance
// ends a breach from before it, though an instance that had not heard of it counted more keys since.
func (b *Breach) replaces(known *Breach) bool {
	switch {
	case known == nil:
		return true
	case known.Open() && !b.Open():
		return !known.Since.After(b.Accepted) || known.At <= b.At
	case !known.Open() && b.Open():
		return b.Since.After(known.Accepted) && known.At < b.At
	}
	return known.At < b.At
}

// told is the breach as operators are told of it: keys that were evicted go before what else it is about.
func (b *Breach) told() Breach {
	told := *b
	if b.Evicted > 0 {
		told.Reason, told.What = Evicted, evictedText(b.Evicted, 0)
		if b.Reason != Evicted {
			told.What += "; " + b.What
		}
	}
	return told
}

// bar is why the partition is not decided, or nil.
func (b *Breach) bar() *Bar {
	if b == nil || !b.Open() {
		return nil
	}
	return &Bar{Reason: broken, node: b.Node,
		what: fmt.Sprintf("node %s: %s, since %s", b.Node, b.told().What, b.Since.UTC().Format(time.RFC3339)),
		way:  "the users are unavailable until an operator accepts the loss (capper store accept)"}
}

// serverRun is one run of a server, from its start to its end: its counters begin at 0.
type serverRun struct {
	Node    string `json:"node"`
	Evicted int64  `json:"evicted"` // evicted_keys of which nothing is lost, or all was accepted
	At      int64  `json:"at"`
	// AppendOnly is that the run was seen with its append-only file on. Instances of earlier versions drop it.
	AppendOnly bool `json:"append_only,omitempty"`
}

// ledger is what is known of breaches, and of the runs of servers. Each instance has it in memory and
// merges it with the copies in the store: what one of them lost, another brings back.
type ledger struct {
	users    int // how many partitions have any
	mu       sync.Mutex
	read     bool // a copy with entries was read, or all of them were
	old      bool // servers were known before: one that is new to it counts from 0
	breaches map[int]*Breach
	runs     map[string]serverRun
}

// Fields of a copy: p and a partition's number, r and the id of a run.
const (
	partitionField = "p"
	runField       = "r"
)

// runKept is for how long the run of a server that is not seen is kept.
const runKept = 90 * 24 * time.Hour

// fields is the ledger as a copy holds it.
func (l *ledger) fields() map[string]string {
	fields := map[string]string{}
	for p, b := range l.breaches {
		fields[partitionField+strconv.Itoa(p)] = encode(b)
	}
	for id, r := range l.runs {
		fields[runField+id] = encode(r)
	}
	return fields
}

func encode(v any) string {
	text, _ := json.Marshal(v) // texts, numbers and times: never fails
	return string(text)
}

// merge takes what a copy holds that is later. A field that cannot be read counts as missing.
func (l *ledger) merge(copied map[string]string) {
	for field, text := range copied {
		switch {
		case strings.HasPrefix(field, partitionField):
			p, err := strconv.Atoi(field[1:])
			var b Breach
			if err == nil && p >= 0 && json.Unmarshal([]byte(text), &b) == nil && b.replaces(l.breaches[p]) {
				l.breaches[p] = &b
			}
		case strings.HasPrefix(field, runField):
			var r serverRun
			known, ok := l.runs[field[1:]]
			if json.Unmarshal([]byte(text), &r) != nil {
				continue
			}
			r.AppendOnly, known.AppendOnly = r.AppendOnly || known.AppendOnly, r.AppendOnly || known.AppendOnly
			if ok && known.At >= r.At {
				r = known
			}
			l.runs[field[1:]] = r
		}
	}
}

// prune drops accepted breaches that no limit can see any more, and runs of servers that have not been
// seen for long.
func (l *ledger) prune(now time.Time, retention time.Duration) {
	maps.DeleteFunc(l.breaches, func(_ int, b *Breach) bool {
		return !b.Open() && retention > 0 && now.After(b.Accepted.Add(retention))
	})
	maps.DeleteFunc(l.runs, func(_ string, r serverRun) bool { return now.After(time.UnixMilli(r.At).Add(runKept)) })
}

// BrokenPromise is a breach with all the partitions that it is of.
type BrokenPromise struct {
	Breach
	Partitions int // with users: that of the store's records has none
}

// broken are the breaches for which keep holds, those of one node and reason together, in order of nodes.
func (l *ledger) broken(keep func(*Breach) bool) []BrokenPromise {
	l.mu.Lock()
	defer l.mu.Unlock()
	return promises(l.breaches, l.users, keep)
}

func promises(breaches map[int]*Breach, users int, keep func(*Breach) bool) (broken []BrokenPromise) {
	for _, p := range slices.Sorted(maps.Keys(breaches)) {
		if !keep(breaches[p]) {
			continue
		}
		b := breaches[p].told()
		i := slices.IndexFunc(broken, func(known BrokenPromise) bool {
			return known.Node == b.Node && known.Reason == b.Reason && known.Accepted.Equal(b.Accepted)
		})
		if i < 0 {
			i, broken = len(broken), append(broken, BrokenPromise{Breach: b})
		}
		if p < users {
			broken[i].Partitions++
		}
		if b.Evicted > broken[i].Evicted {
			broken[i].Evicted, broken[i].What = b.Evicted, b.What
		}
		if b.Since.Before(broken[i].Since) {
			broken[i].Since = b.Since
		}
	}
	slices.SortStableFunc(broken, func(a, b BrokenPromise) int { return strings.Compare(a.Node, b.Node) })
	return broken
}

// BrokenIn are the breaches that nobody has accepted, as copies of the ledger tell. users: how many partitions have
// any.
func BrokenIn(users int, copies ...map[string]string) []BrokenPromise {
	l := newLedger(users)
	for _, copied := range copies {
		l.merge(copied)
	}
	return promises(l.breaches, users, (*Breach).Open)
}

func newLedger(users int) *ledger {
	return &ledger{users: users, breaches: map[int]*Breach{}, runs: map[string]serverRun{}}
}
