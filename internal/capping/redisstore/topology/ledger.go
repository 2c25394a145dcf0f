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

// A Breach is an event on a server that may have removed users' logs in a partition. A breach stays open until an
// operator accepts the possible loss of logs.
type Breach struct {
	Reason   string    `json:"reason"` // evicting, Evicted or appendOnly
	Node     string    `json:"node"`
	What     string    `json:"what"`
	Since    time.Time `json:"since"`
	Evicted  int64     `json:"evicted,omitempty"` // keys evicted in one run of the server since the last acceptance
	Accepted time.Time `json:"accepted,omitzero"` // zero: no operator has accepted the breach
	Why      string    `json:"why,omitempty"`     // the operator's reason
	At       int64     `json:"at"`                // time of the entry in ms; a later entry replaces an earlier entry
}

// These constants are the causes of a breach (an event that may have removed logs). A label of a metric also has these
// constants as values.
const (
	evicting   = "policy"      // the server's maxmemory-policy evicts keys
	Evicted    = "evicted"     // evicted_keys has grown since the store was created
	appendOnly = "append_only" // the append-only file is off
)

// The method Open reports whether the breach (possible loss of logs) still needs an operator's acceptance.
func (b *Breach) Open() bool { return b.Accepted.IsZero() }

// The method "replaces" reports whether the breach b (possible loss of logs) replaces the breach "known" of the same
// partition. The breach "known" may be nil. An operator's acceptance replaces all earlier breaches (possible losses of
// logs) of the partition. An acceptance stays in force even if another instance, which did not know of the acceptance,
// has counted more evicted keys since.
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

// The method "told" returns the breach (possible loss of logs) in the form for the status. If the server evicted keys,
// the field Reason becomes Evicted, and the text also describes other causes.
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

// The method "bar" returns the quarantine (no decisions until an operator accepts the loss) that the breach (possible
// loss of logs) causes for the partition. If b is nil or an operator has accepted the breach, "bar" returns nil.
func (b *Breach) bar() *Bar {
	if b == nil || !b.Open() {
		return nil
	}
	return &Bar{Reason: broken, node: b.Node,
		what: fmt.Sprintf("node %s: %s, since %s", b.Node, b.told().What, b.Since.UTC().Format(time.RFC3339)),
		way:  "the users are unavailable until an operator accepts the loss (capper store accept)"}
}

// A serverRun is one run of a Redis server, from a start to the end of the process. When a Redis server starts, its
// counters, such as evicted_keys, are 0.
type serverRun struct {
	Node    string `json:"node"`
	Evicted int64  `json:"evicted"` // the harmless or accepted value of evicted_keys
	At      int64  `json:"at"`
	// AppendOnly is true if the append-only file was on at some time during the run of the server. Instances of earlier
	// versions of capper drop this field.
	AppendOnly bool `json:"append_only,omitempty"`
}

// A ledger lists breaches (events that may have removed logs) and the runs of Redis servers. Each instance has the
// ledger in memory, and merges the ledger with the copies in Redis. If one copy in Redis has lost entries, the instance
// restores the entries from another copy.
type ledger struct {
	users    int // number of partitions with users
	mu       sync.Mutex
	read     bool // the instance has read a copy with entries, or all copies
	old      bool // the ledger had entries before, so all evicted keys of a new server are new evictions
	breaches map[int]*Breach
	runs     map[string]serverRun
}

// A copy of the ledger (list of possible losses of logs) is a Redis hash. The field "p" with the number of a partition
// holds a breach, and the field "r" with the run id of a server holds a serverRun.
const (
	partitionField = "p"
	runField       = "r"
)

// runKept is the time for which the ledger (list of possible losses of logs) keeps a run of a Redis server after an
// instance last saw the run.
const runKept = 90 * 24 * time.Hour

// The method "fields" returns the ledger (list of possible losses of logs) in the form of a copy in Redis: as fields of
// a hash.
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
	text, _ := json.Marshal(v) // texts, numbers and times never fail to encode
	return string(text)
}

// If an entry of a copy is newer than the entry of the ledger (list of possible losses of logs), the method "merge"
// adds the entry to the ledger. The method "merge" ignores invalid fields of the copy.
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

// acceptanceKept is the time for which the ledger (list of possible losses of logs) keeps an operator's acceptance.
// This time begins when limits no longer count any send that was recorded before the acceptance. A Redis server that
// was down may come back with an old copy of the ledger, in which the breach is still open. The acceptance in the
// ledger replaces the open breach in an old copy.
const acceptanceKept = 7 * 24 * time.Hour

// The method "prune" removes old entries from the ledger (list of possible losses of logs). Old entries are breaches
// whose acceptance is older than the retention plus a week, and runs of servers that no instance has seen for 90 days.
func (l *ledger) prune(now time.Time, retention time.Duration) {
	maps.DeleteFunc(l.breaches, func(_ int, b *Breach) bool {
		return !b.Open() && retention > 0 && now.After(b.Accepted.Add(retention+acceptanceKept))
	})
	maps.DeleteFunc(l.runs, func(_ string, r serverRun) bool { return now.After(time.UnixMilli(r.At).Add(runKept)) })
}

// A BrokenPromise describes a breach (possible loss of logs) on one server, and the number of partitions that the
// breach affects.
type BrokenPromise struct {
	Breach
	Partitions int // number of affected partitions with users; the partition of the shared records has none
}

// The method "broken" returns the breaches in the ledger (list of possible losses of logs) for which the function
// "keep" returns true. The breaches are grouped by node and cause, and sorted by the address of the node.
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

// BrokenIn reads copies of the ledger, and returns the breaches (possible losses of logs) that no operator has
// accepted. The argument "users" of BrokenIn is the number of partitions with users in the store.
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
