package topology

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"capper/internal/capping/redisstore/fault"
)

// The type "standing" is the result of the last check of a master for evicted keys and a missing append-only file.
type standing struct {
	run     string // run id of the server, which changes with each start
	evicted int64  // the known value of evicted_keys; -1: the server hides the value
	bar     *Bar   // the quarantine because of a promise that is broken now; nil: none
}

// The type "promise" holds the values from INFO that reveal a possible loss of users' logs: evicted keys, the eviction
// policy and the append-only file.
type promise struct {
	run      string
	evicted  int64  // -1: the server hides the value
	evicting string // the maxmemory-policy, if it evicts keys
	aof      string // "1": the append-only file is on; "0": it is off, or the server is loading its data
}

// promiseOf reads the values about evictions and the append-only file from the reply of INFO. For a value that the
// server hides, promiseOf assumes a harmless value, and the operator gets a warning when the store starts.
func (t *Topology) promiseOf(n *Node, facts Facts) promise {
	p := promise{run: facts["run_id"], evicted: -1}
	if p.run == "" {
		p.run = n.addr
	}
	if evicted, err := strconv.ParseInt(facts["evicted_keys"], 10, 64); err == nil {
		p.evicted = evicted
	}
	if policy := facts["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		p.evicting = policy
	}
	if facts["loading"] != "1" {
		p.aof = facts["aof_enabled"]
	}
	return p
}

// withoutFile reports whether a server has no append-only file although the store requires the file. The store does not
// require the append-only file if sends need no replicas and the file was never on in this run of the server. The
// caller of withoutFile must hold the ledger's lock.
func (t *Topology) withoutFile(p promise) bool {
	return p.aof == "0" && !t.config.WithoutAppendOnly && (!t.config.ReplicaAcks.None() ||
		t.ledger.runs[p.run].AppendOnly)
}

// The method "judge" checks a master's reply of INFO. If the master evicts keys, has evicted keys or lacks the
// append-only file, "judge" puts its partitions into quarantine (no decisions until an operator accepts the loss).
func (n *Node) judge(facts Facts) {
	t, l := n.top, n.top.ledger
	p := t.promiseOf(n, facts)
	l.mu.Lock()
	known := l.baseline(n.addr, p, time.Now())
	if before := n.standing.Load(); !l.read && before != nil && before.run == p.run {
		known = before.evicted
	}
	reason, what := p.breach(known, t.withoutFile(p))
	l.mu.Unlock()
	s := &standing{run: p.run, evicted: known}
	if reason != "" {
		s.bar = t.markBroken(n, Breach{Reason: reason, What: what, Evicted: max(0, p.evicted-known)})
	}
	n.standing.Store(s)
}

// The method "baseline" returns the known or accepted value of evicted_keys for a run of a server. If the ledger (list
// of possible losses of logs) does not know the run, the method "baseline" returns 0. If the ledger (list of possible
// losses of logs) is new, the method "baseline" returns the present value of evicted_keys.
func (l *ledger) baseline(addr string, p promise, now time.Time) int64 {
	r, known := l.runs[p.run]
	on := p.aof == "1"
	switch {
	case p.evicted < 0:
		return -1
	case !l.read:
		return p.evicted
	case !known && !l.old:
		r.Evicted = p.evicted
	case p.evicted == 0: // a new run, or somebody ran CONFIG RESETSTAT
		r.Evicted = 0
	}
	before := l.runs[p.run]
	if !known || before.Evicted != r.Evicted || now.Sub(time.UnixMilli(before.At)) > 24*time.Hour {
		r.Node, r.At = addr, max(now.UnixMilli(), before.At+1)
	}
	// Instances change AppendOnly only from false to true, so this change needs no later time in the ledger (list of
	// possible losses of logs). An entry with a later time would undo the acceptance of evictions by another instance.
	r.AppendOnly = on || before.AppendOnly
	l.runs[p.run] = r
	return r.Evicted
}

// If the server may have lost logs, the method "breach" returns the cause and a description; otherwise, "breach"
// returns "". The argument "known" of the method "breach" is the known or accepted value of evicted_keys. The argument
// "withoutFile" of the method "breach" is true if the server lacks the required append-only file.
func (p *promise) breach(known int64, withoutFile bool) (reason, what string) {
	switch {
	case p.evicting != "":
		return evicting, fmt.Sprintf("maxmemory-policy is %s, which silently deletes recorded sends", p.evicting)
	case p.evicted > 0 && p.evicted != known:
		return Evicted, evictedText(p.evicted, known)
	case withoutFile:
		return appendOnly, "appendonly is no: a restart loses recorded sends"
	}
	return "", ""
}

func evictedText(evicted, known int64) string {
	return fmt.Sprintf("the server has evicted %d keys", max(evicted-known, 1))
}

// markBroken records a breach (possible loss of logs) for all partitions of the node. The method markBroken returns the
// quarantine (no decisions until an operator accepts the loss) as the error for commands to the node. If a partition
// already has an open breach (possible loss of logs), this breach keeps its start time and, in most cases, its cause.
func (t *Topology) markBroken(n *Node, fresh Breach) *Bar {
	fresh.Node, fresh.Since = n.addr, time.Now()
	fresh.At = fresh.Since.UnixMilli()
	news := 0 // partitions whose change matters to operators
	t.ledger.mu.Lock()
	for p := range t.routes {
		if t.Route(p) == n && t.ledger.mark(p, fresh) {
			news++
		}
	}
	t.showBroken()
	t.ledger.mu.Unlock()
	if news > 0 {
		t.config.Logger.Error("Redis store", "error", fresh.bar(), "partitions", news)
		t.DoubtSigns() // the next heartbeat writes the breach to the store
	}
	return fresh.bar()
}

// The method "mark" records an open breach (possible loss of logs) of the partition in the ledger. The caller of the
// method "mark" must hold the ledger's lock. If the partition already has an open breach, "mark" only raises the number
// of evicted keys in this breach. If the eviction policy caused the evictions, "mark" also changes the cause of the
// breach. The result "news" of the method "mark" is true if operators need to know of the change. If only an already
// known number of evicted keys increases, "news" is false.
func (l *ledger) mark(p int, b Breach) (news bool) {
	before := l.breaches[p]
	if before != nil {
		b.At = max(b.At, before.At+1)
	}
	if before == nil || !before.Open() {
		l.breaches[p] = &b
		return true
	}
	why := before.Reason == Evicted && b.Reason == evicting
	if !why && b.Evicted <= before.Evicted {
		return false
	}
	more := *before
	more.Evicted, more.At = max(b.Evicted, before.Evicted), b.At
	if why {
		more.Reason, more.What = b.Reason, b.What
	}
	l.breaches[p] = &more
	return why || before.Reason != Evicted && before.Evicted == 0
}

// showBroken starts and ends the quarantines of all partitions according to the breaches in the ledger (list of
// possible losses of logs). The caller of showBroken must hold the ledger's lock.
func (t *Topology) showBroken() {
	for p := range t.broken {
		t.broken[p].Store(t.ledger.breaches[p].bar())
	}
}

// The method Examined returns the reason why the store must not send a command to the node, or nil if the store may
// send commands. The method Examined first checks a new or restarted master for evicted keys and a missing append-only
// file.
func (n *Node) Examined(ctx context.Context) error {
	if s := n.standing.Load(); s == nil || n.restarted(s.run) {
		found, err := n.replicas(ctx)
		if err != nil {
			return fmt.Errorf("read the settings of a Redis server: %w", err)
		}
		n.judge(found.facts)
	}
	s := n.standing.Load()
	switch {
	case s == nil: // a refresh has meanwhile found that the node is a replica
		return errNotExamined
	case s.bar != nil:
		return s.bar
	}
	return nil
}

// The method "restarted" reports whether the latest connection showed another run of the server than the given run.
func (n *Node) restarted(run string) bool {
	process := n.process.Load()
	return process != nil && *process != "" && *process != run && run != n.addr
}

const (
	// Pipelines with at least evictionUsers users always read evicted_keys (the server's counter of evicted keys). The
	// read takes about 3 µs of the server's time, and the reply has 1.3 kB.
	evictionUsers = 128
	// evictionEvery is the minimum interval between reads of evicted_keys (the server's counter of evicted keys) by
	// pipelines with few users.
	evictionEvery = 10 * time.Millisecond
)

// An evictedQuestion is a command at the end of a pipeline that reads evicted_keys, the server's count of evicted keys.
type evictedQuestion struct {
	info  *redis.StringCmd
	asked int64 // time of the command in µs
}

// AskEvicted adds a read of the counter evicted_keys to the end of a pipeline. The argument "users" of AskEvicted is
// the number of users in the commands of the pipeline. The reply to the read of evicted_keys shows whether the server
// evicted keys before a command of the pipeline ran. If the last known value is recent enough, AskEvicted adds no
// command and returns nil.
func (n *Node) AskEvicted(ctx context.Context, pipe redis.Pipeliner, users int) *evictedQuestion {
	s := n.standing.Load()
	if s != nil && s.evicted < 0 {
		return nil
	}
	now := time.Now().UnixMicro()
	since := time.Duration(now-n.evictionKnown.Load()) * time.Microsecond
	if s != nil && users < evictionUsers && since >= 0 && since < evictionEvery {
		return nil
	}
	return &evictedQuestion{pipe.Info(ctx, "stats"), now}
}

// JudgeEvicted checks the server's count of evicted keys in the reply to the command that AskEvicted added.
// JudgeEvicted returns the reason to reject the replies of the pipeline, or nil to accept them.
func (n *Node) JudgeEvicted(asked *evictedQuestion) error {
	s := n.standing.Load()
	switch {
	case asked == nil:
		return nil
	case asked.info.Err() != nil:
		return fmt.Errorf("read the number of keys that a Redis server evicted: %w", asked.info.Err())
	case s == nil:
		return errNotExamined // a refresh has meanwhile found that the node is a replica
	}
	evicted, ok := evictedOf(asked.info.Val())
	if !ok || evicted == 0 || evicted == s.evicted {
		n.evictionKnown.Store(asked.asked)
		return nil
	}
	l := n.top.ledger
	l.mu.Lock()
	known, counted := l.runs[s.run]
	accepted := counted && known.Evicted == evicted
	l.mu.Unlock()
	if accepted { // the next check takes the acceptance into account
		n.top.RefreshSoon()
		return errNotExamined
	}
	return n.top.markBroken(n, Breach{Reason: Evicted, What: evictedText(evicted, s.evicted),
		Evicted: max(0, evicted-s.evicted)})
}

// errNotExamined reports that the store must check a node for evictions before it accepts replies of the node.
var errNotExamined error = notExamined{}

type notExamined struct{}

func (notExamined) Error() string { return "the settings of the server are being checked" }

func (notExamined) Remedy() fault.Remedy {
	return fault.Remedy{Kind: fault.Down, Unknown: true, Refresh: true}
}

// evictedOf returns the value of evicted_keys, the count of evicted keys, from a reply of INFO.
func evictedOf(info string) (int64, bool) {
	const name = "\nevicted_keys:"
	at := strings.Index(info, name)
	if at < 0 {
		return 0, false
	}
	text, _, _ := strings.Cut(info[at+len(name):], "\r")
	evicted, err := strconv.ParseInt(text, 10, 64)
	return evicted, err == nil
}

// BrokenPromises returns the open breaches, that is, possible losses of logs that no operator has accepted.
func (t *Topology) BrokenPromises() []BrokenPromise { return t.ledger.broken((*Breach).Open) }

// AcceptedPromises returns the breaches (possible losses of logs) that operators accepted within the time "retention",
// because such breaches can still affect decisions. If "retention" is 0, AcceptedPromises returns all accepted
// breaches.
func (t *Topology) AcceptedPromises(retention time.Duration) []BrokenPromise {
	now := time.Now()
	return t.ledger.broken(func(b *Breach) bool {
		return !b.Open() && (retention <= 0 || !now.After(b.Accepted.Add(retention)))
	})
}

// ledgerKey returns the Redis key of the copy of the ledger (list of breaches) in this partition.
func (p *Partition) ledgerKey() string { return LedgerKey(p.Prefix) }

// LedgerKey returns the Redis key of a copy of the ledger (list of breaches). The argument "prefix" of LedgerKey is the
// prefix of the partition's keys.
func LedgerKey(prefix string) string { return prefix + "-promises" }

// KeepLedger merges the ledger (list of breaches) in memory with the copies in Redis, and updates the copies. Without
// further writes, the copies of the ledger expire after the duration "life". KeepLedger removes breaches (possible
// losses of logs) whose acceptance is older than the retention plus a week. The result "kept" of KeepLedger is the
// number of copies in Redis that equal the ledger after the update.
func (t *Topology) KeepLedger(ctx context.Context, life, retention time.Duration) (kept int, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.config.LongestAttempt())
	defer cancel()
	copies, all, faults := t.readLedger(ctx)
	l := t.ledger
	l.mu.Lock()
	for _, copied := range copies {
		l.merge(copied)
		l.old = l.old || len(copied) > 0
	}
	l.prune(time.Now(), retention)
	l.read = l.read || all || l.old
	t.showBroken()
	fields := l.fields()
	l.mu.Unlock()
	for p, copied := range copies {
		if err := t.writeLedger(ctx, p, copied, fields, life); err != nil {
			faults = append(faults, err)
			continue
		}
		kept++
	}
	l.mu.Lock()
	l.old = l.old || kept > 0 && len(fields) > 0
	l.mu.Unlock()
	return kept, errors.Join(faults...)
}

// readLedger returns every readable copy of the ledger (list of breaches), by the partition of the copy. The result
// "all" of readLedger is true if all copies were read.
func (t *Topology) readLedger(ctx context.Context) (copies map[int]map[string]string, all bool, faults []error) {
	var mu sync.Mutex
	var asked sync.WaitGroup
	copies = map[int]map[string]string{}
	for _, p := range t.config.LedgerCopies {
		asked.Go(func() {
			copied, err := t.askLedger(ctx, p)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				faults = append(faults, err)
				return
			}
			copies[p] = copied
		})
	}
	asked.Wait()
	return copies, len(copies) == len(t.config.LedgerCopies), faults
}

func (t *Topology) askLedger(ctx context.Context, p int) (map[string]string, error) {
	n := t.Route(p)
	if n == nil {
		return nil, fault.ErrNoRoute
	}
	copied, err := n.client.HGetAll(ctx, t.config.Partitions[p].ledgerKey()).Result()
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", n.addr, err)
	}
	return copied, nil
}

// writeLedger changes one copy of the ledger (list of breaches) in Redis, so that it has exactly the given fields.
func (t *Topology) writeLedger(ctx context.Context, p int, copied, fields map[string]string, life time.Duration) error {
	n := t.Route(p)
	if n == nil {
		return fault.ErrNoRoute
	}
	pipe, key := n.client.Pipeline(), t.config.Partitions[p].ledgerKey()
	var set []any
	for field, text := range fields {
		if copied[field] != text {
			set = append(set, field, text)
		}
	}
	var gone []string
	for field := range copied {
		if _, kept := fields[field]; !kept {
			gone = append(gone, field)
		}
	}
	if set != nil {
		pipe.HSet(ctx, key, set...)
	}
	if gone != nil {
		pipe.HDel(ctx, key, gone...)
	}
	pipe.PExpire(ctx, key, life)
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("node %s: %w", n.addr, err)
	}
	return nil
}

// BeginLedger empties the ledger (list of breaches), because the store is new and has no records to lose.
func (t *Topology) BeginLedger() {
	l := t.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.breaches)
	clear(l.runs)
	l.read, l.old = true, false
	t.showBroken()
}

// LookAtPromises checks whether any node, including replicas, has evicted keys or lacks its append-only file. If a
// master has evicted keys or lacks its append-only file, LookAtPromises puts its partitions into quarantine (no
// decisions until an operator accepts the loss). LookAtPromises returns an error about masters that did not answer.
func (t *Topology) LookAtPromises(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.config.LongestAttempt())
	defer cancel()
	masters := map[*Node]bool{}
	for _, n := range t.Masters() {
		masters[n] = true
	}
	var mu sync.Mutex
	var faults []error
	var asked sync.WaitGroup
	for _, n := range t.Nodes() {
		asked.Go(func() {
			text, err := n.client.Info(ctx).Result()
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && masters[n]:
				n.judge(ParseInfo(text))
			case err == nil:
				t.noteRun(n, ParseInfo(text))
			case masters[n]:
				faults = append(faults, fmt.Errorf("node %s: %w", n.addr, err))
			}
		})
	}
	asked.Wait()
	return errors.Join(faults...)
}

// EvictedBefore returns the number of keys that each server had evicted before the ledger (list of breaches) was
// created. If the ledger already existed when this process started, the returned map is empty.
func (t *Topology) EvictedBefore() map[string]int64 {
	l := t.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	before := map[string]int64{}
	for _, r := range l.runs {
		if r.Evicted > 0 && !l.old {
			before[r.Node] = r.Evicted
		}
	}
	return before
}

// noteRun records the value of evicted_keys of a replica, because this replica may become a master.
func (t *Topology) noteRun(n *Node, facts Facts) {
	t.ledger.mu.Lock()
	defer t.ledger.mu.Unlock()
	t.ledger.baseline(n.addr, t.promiseOf(n, facts), time.Now())
}

// An AcceptError is the reason why an operator cannot accept a loss now: a server still evicts keys, lacks its
// append-only file or does not answer.
type AcceptError struct{ Err error }

// Error returns the reason as text.
func (e *AcceptError) Error() string { return e.Err.Error() }

// The method Accept marks all open breaches (possible losses of logs) as accepted, and returns them. The argument "why"
// of Accept is the operator's reason. If a master still evicts keys, lacks the append-only file or does not answer,
// Accept returns an error. Before the acceptance, Accept creates lost sentinel keys (marker keys that reveal lost data)
// again. The argument "mend" of Accept is a function that restores other lost records of the store, and the argument
// "keep" is a function that stores the acceptance. If "mend" or "keep" returns an error, Accept accepts nothing.
func (t *Topology) Accept(ctx context.Context, why string, mend, keep func() error) ([]BrokenPromise, error) {
	if err := t.LookAtPromises(ctx); err != nil {
		return nil, &AcceptError{fmt.Errorf(
			"a Redis server does not respond, so it is unknown whether it evicts keys: %w",
			err)}
	}
	found, err := t.acceptable(ctx)
	if err != nil {
		return nil, &AcceptError{err}
	}
	if len(t.BrokenPromises()) > 0 {
		err := t.mendBroken(ctx, found)
		if err == nil {
			err = mend()
		}
		if err != nil {
			return nil, fmt.Errorf("recreate the store in Redis from the remaining data: %w", err)
		}
	}
	l := t.ledger
	l.mu.Lock()
	breaches, runs := maps.Clone(l.breaches), maps.Clone(l.runs)
	accepted := promises(l.breaches, l.users, (*Breach).Open)
	l.accept(why, found, time.Now())
	l.mu.Unlock()
	if len(accepted) == 0 {
		return nil, nil
	}
	if err := keep(); err != nil {
		l.mu.Lock()
		l.breaches, l.runs = breaches, runs
		t.showBroken()
		l.mu.Unlock()
		return nil, err
	}
	_ = t.LookAtPromises(ctx) // if this check fails, the next refresh ends the quarantine
	return accepted, nil
}

// The method "acceptable" returns the values of INFO about evictions and the append-only file for each master. If a
// master still evicts keys, lacks the append-only file or does not answer, "acceptable" returns an error.
func (t *Topology) acceptable(ctx context.Context) (map[string]promise, error) {
	found := map[string]promise{}
	for _, n := range t.Masters() {
		text, err := n.client.Info(ctx).Result()
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", n.addr, err)
		}
		p := t.promiseOf(n, ParseInfo(text))
		t.ledger.mu.Lock()
		withoutFile := t.withoutFile(p)
		t.ledger.mu.Unlock()
		switch {
		case p.evicting != "":
			return nil, fmt.Errorf(
				"node %s: the setting 'maxmemory-policy' is still '%s': "+
					"set it to 'noeviction' on all masters and replicas first",
				n.addr, p.evicting)
		case withoutFile:
			return nil, fmt.Errorf(
				"node %s: the setting 'appendonly' is still 'no': set it to 'yes' on all masters and replicas first",
				n.addr)
		}
		found[n.addr] = p
	}
	return found, nil
}

// The method "accept" marks all open breaches in the ledger (list of possible losses of logs) as accepted, and the
// masters' present values of evicted_keys as known.
func (l *ledger) accept(why string, found map[string]promise, now time.Time) {
	for p, b := range l.breaches {
		if b.Open() {
			taken := *b
			taken.Accepted, taken.Why, taken.At = now, why, max(now.UnixMilli(), b.At+1)
			l.breaches[p] = &taken
		}
	}
	for addr, p := range found {
		if p.evicted >= 0 {
			r := l.runs[p.run]
			r.Node, r.Evicted, r.At = addr, p.evicted, max(now.UnixMilli(), r.At+1)
			l.runs[p.run] = r
		}
	}
}
