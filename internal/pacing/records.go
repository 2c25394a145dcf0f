package pacing

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"maps"
	"sync"
	"time"

	"capper/internal/capping"
)

// RecordKind is a kind of record that grants of permits create in the store: a remembered request or a log.
type RecordKind byte

// These constants are the kinds of records that grants of permits create in the store.
const (
	RequestRecord RecordKind = 'r' // a remembered request
	LogRecord     RecordKind = 'm' // the log of one message or key
)

// RecordKinds returns all kinds of records.
func RecordKinds() []RecordKind { return []RecordKind{RequestRecord, LogRecord} }

// String returns the name of the record kind, as in metrics.
func (k RecordKind) String() string {
	if k == RequestRecord {
		return "request"
	}
	return "log"
}

// RecordGroup identifies records in the store: all records of one kind that belong to one client and expire together.
type RecordGroup struct {
	Client  string
	Kind    RecordKind
	Expires int64 // seconds since 1970
}

// RecordStore stores the numbers of requests and logs in the store, and reports whether a single request or log exists.
// A RecordStore is safe for concurrent use, and every method returns within the deadline of ctx.
type RecordStore interface {
	// HasRequest reports whether the store remembers the request for pacers of the group.
	HasRequest(ctx context.Context, group string, r Request) (bool, error)
	// HasLog reports whether the target has a stored log.
	HasLog(ctx context.Context, target *Target) (bool, error)
	// AddRecords adds the given counts to the counts of records that all instances share. AddRecords removes counts
	// that expire at or before now, and returns the remaining counts. If AddRecords returns an error, the store may
	// still have added the counts.
	AddRecords(ctx context.Context, added map[RecordGroup]int, now time.Time) (map[RecordGroup]int, error)
}

// RecordBounds holds the maximum numbers of records (remembered requests or logs) of each kind. A zero field means the
// default.
type RecordBounds struct {
	Client int // records of one client; default 250,000
	All    int // records of all clients; default 1,000,000
}

// WithDefaults returns a copy of the bounds in which each zero field has its default value.
func (b RecordBounds) WithDefaults() RecordBounds {
	b.Client = cmp.Or(b.Client, 250_000)
	b.All = cmp.Or(b.All, 1_000_000)
	return b
}

// RecordsError is the error for a call for permits that would create more records in the store than the bounds allow.
type RecordsError struct {
	Kind       RecordKind
	Bound      int
	InAll      bool          // true if the bound for all clients together was reached
	RetryAfter time.Duration // time until the next records expire, at least a second
}

func (e *RecordsError) Error() string {
	what, remedy := "remembered requests", "call without request_id, or with a shorter max_wait"
	if e.Kind == LogRecord {
		what, remedy = "logs of messages and keys", "use fewer message ids and keys with pacers per message or key"
	}
	of := "this client has"
	if e.InAll {
		of = "all clients together have"
	}
	return fmt.Sprintf("%s %d %s, the most that are kept at one time: %s, or try again in %s", of, e.Bound, what,
		remedy, capping.Span(e.RetryAfter))
}

// Records limits the number of records (remembered requests and logs) that grants of permits create in the store. Every
// second, each instance adds its own new records to the counts in the store, and reads the counts of other instances.
// All instances together can therefore exceed a bound by the grants of one second, or by 1/64 of a client's bound for
// each instance. The counts decrease when records expire. A Records value is safe for concurrent use.
type Records struct {
	store  RecordStore
	bounds RecordBounds
	clock  func() time.Time
	logger *slog.Logger
	due    chan struct{} // holds a token when many records were added since the last synchronization
	seed   maphash.Seed

	syncing sync.Mutex
	failing bool // the last synchronization failed; guarded by syncing

	mu     sync.Mutex
	stored map[RecordGroup]int // numbers from the store's latest reply
	sent   map[RecordGroup]int // numbers in a running synchronization
	fresh  map[RecordGroup]int // numbers added since then
	unsent int                 // the sum of fresh
	totals map[holder]int      // sums of stored, sent and fresh, plus reservations of calls in progress
	known  map[uint64]int64    // existing logs by hash: the end of their count in seconds since 1970
}

// The type "holder" identifies the owner of a count of records: one client or all clients together, for one kind of
// records.
type holder struct {
	client string
	kind   RecordKind
	all    bool
}

// NewRecords returns a Records that counts the records of the store. The argument "logger" of NewRecords may be nil.
func NewRecords(store RecordStore, bounds RecordBounds, clock func() time.Time, logger *slog.Logger) *Records {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Records{
		store: store, bounds: bounds.WithDefaults(), clock: clock, logger: logger, due: make(chan struct{}, 1),
		seed:  maphash.MakeSeed(),
		fresh: map[RecordGroup]int{}, totals: map[holder]int{}, known: map[uint64]int64{},
	}
}

// The method Count returns the number of the client's records (remembered requests or logs) of one kind.
func (r *Records) Count(client string, kind RecordKind) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.totals[holder{client: client, kind: kind}]
}

// CountAll returns the number of all clients' records (remembered requests or logs) of one kind.
func (r *Records) CountAll(kind RecordKind) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.totals[holder{kind: kind, all: true}]
}

// The method Used returns the largest used fraction of any bound for the number of records (remembered requests or
// logs).
func (r *Records) Used() (most float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for h, n := range r.totals {
		most = max(most, float64(n)/float64(r.boundOf(h)))
	}
	return most
}

func (r *Records) boundOf(h holder) int {
	if h.all {
		return r.bounds.All
	}
	return r.bounds.Client
}

// An entry is a call in progress that may create records (remembered requests or logs) in the store.
type entry struct {
	records  *Records
	client   string
	logs     []*Target          // the call's targets that have a log for each message or key
	counted  map[string]bool    // by pacer: the log is new, or the count of the log has ended
	reserved map[RecordKind]int // number of records reserved for the call, by kind
}

// The method "enter" admits a call for permits if the call creates no records, repeats an earlier request or stays
// within the maximum numbers. If the store returns an error for a question about records, enter admits the call. If
// enter returns a nil entry, the caller of enter need not call the methods "note" and "leave".
func (r *Records) enter(ctx context.Context, client string, ask *Ask) (*entry, error) {
	if r == nil || ask.Permits == 0 {
		return nil, nil
	}
	e := &entry{records: r, client: client, reserved: map[RecordKind]int{}, counted: map[string]bool{}}
	if ask.Request != (Request{}) {
		e.reserved[RequestRecord] = 1
	}
	for i := range ask.Targets {
		if t := &ask.Targets[i]; t.Message != "" {
			e.logs = append(e.logs, t)
			if isNew, counts := r.judge(ctx, t); counts {
				e.counted[t.Pacer] = true
				if isNew {
					e.reserved[LogRecord]++
				}
			}
		}
	}
	if len(e.logs) == 0 && e.reserved[RequestRecord] == 0 {
		return nil, nil
	}
	refused := r.reserve(e)
	if refused == nil {
		return e, nil
	}
	clear(e.reserved)
	if ask.Request == (Request{}) {
		return nil, refused
	}
	if has, err := r.store.HasRequest(ctx, ask.Group(), ask.Request); err == nil && !has {
		return nil, refused
	}
	return e, nil
}

// The method "judge" reports whether the target has no log yet, and whether a grant must count the log as a new record.
func (r *Records) judge(ctx context.Context, t *Target) (isNew, counts bool) {
	key := r.keyOf(t)
	r.mu.Lock()
	until, known := r.known[key]
	r.mu.Unlock()
	if known && until > r.clock().Unix() {
		return false, false
	}
	has, err := r.store.HasLog(ctx, t)
	isNew = err == nil && !has
	return isNew, isNew || known // if a log is used after the end of its count, it is counted again
}

func (r *Records) keyOf(t *Target) uint64 {
	return maphash.Comparable(r.seed, [2]string{t.Pacer, t.Message})
}

// The method "reserve" increases the counts of records by the number of records that the call may create. If the call
// would exceed a maximum number, "reserve" adds no records and returns an error.
func (r *Records) reserve(e *entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for kind, n := range e.reserved {
		for _, h := range []holder{{client: e.client, kind: kind}, {kind: kind, all: true}} {
			if bound := r.boundOf(h); n > 0 && r.totals[h]+n > bound {
				return &RecordsError{Kind: kind, Bound: bound, InAll: h.all, RetryAfter: r.nextExpiry(h)}
			}
		}
	}
	for kind, n := range e.reserved {
		r.count(e.client, kind, n)
	}
	return nil
}

func (r *Records) count(client string, kind RecordKind, n int) {
	r.totals[holder{client: client, kind: kind}] += n
	r.totals[holder{kind: kind, all: true}] += n
}

// nextExpiry returns the time until the next records in the given count expire.
func (r *Records) nextExpiry(h holder) time.Duration {
	first, now := int64(0), r.clock().Unix()
	for _, groups := range []map[RecordGroup]int{r.stored, r.sent, r.fresh} {
		for g := range groups {
			if g.Kind == h.kind && (h.all || g.Client == h.client) && (first == 0 || g.Expires < first) {
				first = g.Expires
			}
		}
	}
	return time.Duration(max(1, first-now)) * time.Second
}

// The method "note" counts the records (remembered requests and logs) that a grant to the call created in the store.
func (e *entry) note(ask *Ask, grant *Grant) {
	if e == nil || grant.Replayed {
		return
	}
	if ask.Remembers(grant.Granted) {
		e.records.add(e.client, RequestRecord, ask.RememberedFor())
	}
	if grant.Granted == 0 {
		return
	}
	for _, t := range e.logs {
		keep := KeepFor(t.Limits)
		lasts := stateOf(ask, grant, t).Queue + keep + keep/32
		e.records.know(t, lasts, e.counted[t.Pacer])
		if e.counted[t.Pacer] {
			e.records.add(e.client, LogRecord, lasts)
			delete(e.counted, t.Pacer)
		}
	}
}

// stateOf returns the state of one target's log (its used slots and waits) after the grant.
func stateOf(ask *Ask, grant *Grant, t *Target) (s State) {
	for i := range grant.States {
		if ask.Targets[i].Pacer == t.Pacer && ask.Targets[i].Message == t.Message {
			return grant.States[i]
		}
	}
	return s
}

// The method "know" remembers that the target's log exists, and the time at which the counts of records drop the log.
// The method "know" does not change the time for a log that is already counted.
func (r *Records) know(t *Target, lasts time.Duration, counted bool) {
	key := r.keyOf(t)
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.known[key]; known && !counted {
		return
	}
	if len(r.known) >= r.bounds.All {
		for other := range r.known {
			delete(r.known, other)
			break
		}
	}
	r.known[key] = expiryOf(r.clock(), lasts)
}

// The method "add" counts a new record of a client that expires after the given time.
func (r *Records) add(client string, kind RecordKind, lasts time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fresh[RecordGroup{client, kind, expiryOf(r.clock(), lasts)}]++
	r.count(client, kind, 1)
	if r.unsent++; r.unsent >= max(1, r.bounds.Client/64) {
		select {
		case r.due <- struct{}{}:
		default:
		}
	}
}

// expiryOf returns the time until which the counts of records include a new record. A count includes a record a little
// longer than the record exists, by less than 1/16 of the record's lifetime. Many records of a client therefore have a
// common expiry time.
func expiryOf(now time.Time, lasts time.Duration) int64 {
	step := int64(1)
	for step*2 <= int64(lasts/time.Second)/16 {
		step *= 2
	}
	return (now.Add(lasts).Unix()/step + 1) * step
}

// The method "leave" subtracts the reserved records of a finished call from the counts. The method "note" has already
// counted the records that the call created.
func (e *entry) leave() {
	if e == nil {
		return
	}
	e.records.mu.Lock()
	defer e.records.mu.Unlock()
	for kind, n := range e.reserved {
		e.records.count(e.client, kind, -n)
	}
	clear(e.reserved)
}

// syncEvery is the interval at which Run synchronizes the record counts with the store, and syncWithin is the time
// limit of one synchronization.
const (
	syncEvery  = time.Second
	syncWithin = 5 * time.Second
)

// The method Run synchronizes the record counts with the store at regular intervals until ctx ends, and then once more.
func (r *Records) Run(ctx context.Context) {
	ticker := time.NewTicker(syncEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-r.due:
		case <-ctx.Done():
			_ = r.Sync(context.WithoutCancel(ctx))
			return
		}
		_ = r.Sync(ctx)
	}
}

// The method Sync adds this instance's new records to the counts in the store, and reads the counts of the other
// instances. If the store returns an error, the next call of Sync tries to add the same new records again.
func (r *Records) Sync(ctx context.Context) error {
	r.syncing.Lock()
	defer r.syncing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, syncWithin)
	defer cancel()
	now := r.clock()
	stored, err := r.store.AddRecords(ctx, r.send(), now)
	r.receive(stored, err, now)
	if failed := err != nil; failed != r.failing {
		if r.failing = failed; failed {
			r.logger.Warn("the store rejected the number of permit records: until a retry succeeds, this "+
				"instance counts only its own permit records", "error", err.Error())
		} else {
			r.logger.Info("the store accepts the number of permit records again")
		}
	}
	return err
}

// The method "send" returns the new records since the last Sync, which Sync adds to the counts in the store.
func (r *Records) send() map[RecordGroup]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent, r.fresh, r.unsent = r.fresh, map[RecordGroup]int{}, 0
	return r.sent
}

// The method "receive" replaces the record counts by the counts in the store's reply, and removes counts that have
// expired.
func (r *Records) receive(stored map[RecordGroup]int, err error, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.sum()
	if err == nil {
		r.stored = stored
	} else {
		for g, n := range r.sent {
			r.fresh[g] += n
		}
	}
	r.sent = nil
	for _, groups := range []map[RecordGroup]int{r.stored, r.fresh} {
		maps.DeleteFunc(groups, func(g RecordGroup, _ int) bool { return g.Expires <= now.Unix() })
	}
	after := r.sum()
	for h := range r.totals { // reservations of calls in progress stay
		if r.totals[h] += after[h] - before[h]; r.totals[h] == 0 {
			delete(r.totals, h)
		}
		delete(after, h)
	}
	maps.Copy(r.totals, after)
}

// The method "sum" returns the total number of records for each client and kind, and for all clients together.
func (r *Records) sum() map[holder]int {
	sum := map[holder]int{}
	for _, groups := range []map[RecordGroup]int{r.stored, r.sent, r.fresh} {
		for g, n := range groups {
			sum[holder{client: g.Client, kind: g.Kind}] += n
			sum[holder{kind: g.Kind, all: true}] += n
		}
	}
	return sum
}
