package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/script"
	"capper/internal/capping/redisstore/topology"
	"capper/internal/live"
)

// liveConfig is the configuration of liveLogs. Every field of liveConfig must be set.
type liveConfig struct {
	Dispatcher *dispatch.Dispatcher
	Topology   *topology.Topology
	Scripts    script.Scripts
	Prefixes   []string // key prefixes, by partition
	Partition  func(capping.UserID) int
	Images     bool // id images (64-bit numbers) stand for the users, because their ids are not dense
	Clock      func() time.Time
	ClockSkew  time.Duration
	Logger     *slog.Logger
	Timeout    time.Duration // time limit of a call whose context has no deadline
	// Perform calls the function "work", which returns a run (the sending of commands), and returns the faults of this
	// run as one error. Quietly does the same as Perform, but does not count the faults in metrics or report them in
	// Health.
	Perform, Quietly func(work func() *dispatch.Run) error
	Instances        func() instances
}

// The type liveLogs keeps live changes (changes of sets by API calls). Each partition has one log in Redis with the
// changes of all instances (script/live.lua). liveLogs is safe for concurrent use.
type liveLogs struct {
	config liveConfig
	lists  *live.Lists
	logs   []liveLog // by partition
	ctx    context.Context
	cancel context.CancelFunc
	wait   sync.WaitGroup

	applying sync.Mutex // held from reading the version of a partition until its changes are applied
	freeing  sync.Mutex // held while freed changes are removed
	packOne  sync.Mutex // held while a log is packed

	owing sync.Mutex                   // protects owed
	owed  []map[string]capping.Instant // by partition and set: changes up to this time must still be removed
}

// A liveLog is this instance's knowledge about one partition's live change log (log of changes to sets by API calls) in
// Redis.
type liveLog struct {
	mu      sync.Mutex
	next    *renewal // the next renewal, which has not begun; nil: none
	running bool     // a goroutine performs renewals
	logged  string   // the latest error that was written to capper's own log

	packing  atomic.Bool
	packed   atomic.Int64 // the number of the latest record that was packed, as far as known
	doubtful atomic.Bool  // the partition was in quarantine, so the log may have lost records

	restored restoration // protected by mu
}

// A renewal reads a live change log (log of changes to sets by API calls) from Redis one time, so that this instance
// has all changes of the log. Any number of calls may wait for the same renewal.
type renewal struct {
	done chan struct{}
	err  error // valid after done is closed
}

// liveTTL is the TTL of the Redis key of a live change log (log of changes to sets by API calls). Each live change sets
// the TTL of the log's key again. A running instance renews the TTL twice a day.
const liveTTL = 400 * 24 * time.Hour

var _ live.Store = (*Store)(nil)

// newLiveLogs returns the live change logs (logs of changes to sets by API calls) of a store. The lists in memory
// contain no live changes until liveLogs has read Redis for the first time.
func newLiveLogs(config liveConfig) *liveLogs {
	n := len(config.Prefixes)
	l := &liveLogs{config: config, lists: live.New(n), logs: make([]liveLog, n)}
	if config.Images {
		l.lists = live.NewOfImages(n)
	}
	l.owed = make([]map[string]capping.Instant, n)
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

func (l *liveLogs) close() {
	l.cancel()
	l.wait.Wait()
}

// The method Lists returns the live changes (changes of sets by API calls) that this instance has read or stored; see
// live.Store.
func (s *Store) Lists() *live.Lists { return s.live.lists }

// The method Change appends the changes in the batch to the live change logs of the users' partitions, and applies the
// changes to Lists; see live.Store. If the partition of a user is in quarantine (no decisions until an operator accepts
// the loss), Change marks the user as Unstored.
func (s *Store) Change(ctx context.Context, b *live.Batch) (live.Stored, error) {
	seen := s.fleet.seen.Load()
	switch {
	case seen.gone != nil:
		return live.Stored{Unstored: usersOf(live.RecordOf(b, 0))}, seen.gone
	case seen.format < script.LiveFormat:
		return live.Stored{}, live.ErrOlderInstance
	}
	return s.live.change(ctx, b)
}

// The method Renew reads the live changes (changes of sets by API calls) of other instances from Redis; see live.Store.
func (s *Store) Renew(ctx context.Context, users []capping.UserID) error {
	err := s.live.renewUsers(ctx, users)
	if err != nil && ctx.Err() == nil && !isRestoration(err) { // Health reports restorations separately
		s.trouble.note(&dispatch.Faults{}, err)
	}
	return err
}

// The method Free removes the live changes that every generation (published version) of segments in use contains; see
// live.Store.
func (s *Store) Free(ctx context.Context, upTo map[string]capping.Instant) error {
	return s.live.free(ctx, upTo)
}

// AnnounceAsOf stores the as-of times (times of export) of the sets that this instance uses. The next heartbeat sends
// the as-of times (times of export) to the other instances; see live.Store.
func (s *Store) AnnounceAsOf(asOf map[string]capping.Instant) {
	asOf = maps.Clone(asOf)
	s.fleet.asOf.Store(&asOf)
}

// OthersAsOf returns the as-of times (times of export) of sets from the latest heartbeats of the other instances; see
// live.Store. While the heartbeats of this instance fail, the result "ok" of OthersAsOf is false.
func (s *Store) OthersAsOf() (asOf map[string]capping.Instant, ok bool) {
	seen := s.fleet.seen.Load()
	if s.fleet.missed.Load() != nil || seen.othersAsOf == nil {
		return nil, false
	}
	return maps.Clone(seen.othersAsOf), true
}

// changeRounds is the maximum number of attempts to store a live change (change of a set by an API call). The store
// makes a further attempt if another instance has stored a later change of the same user.
const changeRounds = 5

// The method "change" implements Store.Change.
func (l *liveLogs) change(ctx context.Context, b *live.Batch) (live.Stored, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.config.Timeout)
		defer cancel()
	}
	var stored live.Stored
	var faults []error
	rest := *b
	clock := func() capping.Instant { return capping.InstantOf(l.config.Clock()) }
	now := clock() // of all rounds: a late round overrides nothing that came meanwhile
	for round := 1; ; round++ {
		var followed int
		rest, followed = l.lists.WithoutLater(&rest, later(ctx, clock(), l.config.ClockSkew))
		stored.Superseded += followed
		at := l.lists.Stamp(&rest, now)
		stored.At = max(stored.At, at)
		parts := live.RecordOf(&rest, at).SplitBy(l.config.Partition)
		failed, err := l.append(ctx, parts)
		faults = append(faults, err)
		overtaken, again := 0, live.Batch{Set: b.Set, By: b.By, After: b.After}
		later := later(ctx, clock(), l.config.ClockSkew)
		for p, part := range parts {
			if failed[p] {
				stored.Unstored = append(stored.Unstored, usersOf(part)...)
				continue
			}
			stored.Superseded += l.lists.Superseded(part)
			overtaken += l.lists.AddOvertaken(&again, part, later)
		}
		if b.At != 0 || overtaken == 0 || round == changeRounds {
			break
		}
		stored.Superseded -= overtaken
		rest = again
	}
	slices.Sort(stored.Unstored)
	return stored, errors.Join(faults...)
}

func usersOf(r *live.Record) (users []capping.UserID) {
	for i := range r.Runs {
		for _, some := range r.Runs[i].Users {
			users = append(users, some...)
		}
	}
	return users
}

// The method "append" stores one record in each partition's live change log (log of changes to sets by API calls), and
// applies the records to Lists. The result "failed" contains the partitions whose record the method "append" could not
// store or apply.
func (l *liveLogs) append(ctx context.Context, parts map[int]*live.Record) (failed map[int]bool, err error) {
	operations := make(map[int]*appendOperation, len(parts))
	err = l.config.Perform(func() *dispatch.Run {
		r := l.config.Dispatcher.NewRun(nil, true)
		r.Faults.What = "some changes of sets are"
		for p, part := range parts {
			operations[p] = l.newAppend(part)
			r.Add(operations[p], p)
		}
		r.Do(ctx)
		return r
	})
	failed = map[int]bool{}
	renewals := map[int]*renewal{}
	for p, part := range parts {
		op := operations[p]
		switch {
		case op == nil || !op.done:
			failed[p] = true
		case !l.applyAfter(p, op.before, op.after, nil, part): // other instances have changed the log meanwhile
			renewals[p] = l.renewSoon(p)
		}
		if op != nil && op.done {
			l.packWhenLong(p, op.after, &op.meta)
		}
	}
	for p, renewal := range renewals {
		if fault := renewal.await(ctx); fault != nil {
			failed[p] = true
			err = errors.Join(err, fmt.Errorf("read the changes of sets: %w", fault))
		}
	}
	return failed, err
}

// If Lists contains exactly the records of a live change log up to the version "before", applyAfter applies further
// records of this log to Lists. The argument "freed" of applyAfter holds, for each set, the time up to which the store
// has removed changes from the log. If the store has removed nothing, "freed" is nil. If Lists has another version of
// the log than "before", applyAfter changes nothing and returns false.
func (l *liveLogs) applyAfter(p int, before, after string, freed map[string]capping.Instant,
	records ...*live.Record) bool {
	l.applying.Lock()
	defer l.applying.Unlock()
	if l.lists.Version(p) != before {
		return false
	}
	l.lists.ApplyUpTo(p, after, freed, records)
	return true
}

// An appendOperation appends a record to the live change log (log of changes to sets by API calls) of a partition. If
// the reply to a successful attempt was lost, the next attempt appends the same record again. The repeated record does
// not change the result for users.
type appendOperation struct {
	logs   *liveLogs
	id     string
	nonce  []byte // random name of the record in the current attempt
	record []byte

	done          bool
	before, after string
	meta          script.LiveMeta
}

func (l *liveLogs) newAppend(r *live.Record) *appendOperation {
	return &appendOperation{logs: l, id: newLiveName(), nonce: []byte(newLiveName()), record: live.AppendRecord(nil, r)}
}

// newLiveName returns a random text: the id of a new live change log (log of changes to sets by API calls), or the
// nonce (random name) of a record.
func newLiveName() string {
	var name [script.LiveHex / 2]byte
	_, _ = rand.Read(name[:]) // never fails
	return hex.EncodeToString(name[:])
}

// The method Encode sets the arguments of live.lua.
func (o *appendOperation) Encode(c *dispatch.Command) {
	config := &o.logs.config
	c.Args.LiveAppend(config.Scripts.Live, config.Prefixes[c.Partition], liveTTL, o.id, o.nonce, o.record)
}

// The method Stamp sets the time of the attempt, so that live.lua rejects the change if the clock is wrong. Each
// attempt to append a record has a new nonce (random name of the record). After a failover, the live change log may
// differ from the log of an earlier attempt. The records of two attempts may follow different records in the log, so
// their nonces (random names) must differ.
func (o *appendOperation) Stamp(c *dispatch.Command, at dispatch.Stamp) {
	copy(o.nonce, newLiveName())
	c.Args.StampTime(at.Now, o.logs.config.ClockSkew)
}

// The method Apply stores the versions of the live change log (log of changes to sets by API calls) before and after
// the new record.
func (o *appendOperation) Apply(c *dispatch.Command) (n int, err error) {
	o.before, o.after, o.meta, err = script.DecodeLiveAppended(c.List)
	o.done = err == nil
	return 0, err
}
