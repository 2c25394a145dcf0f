package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/script"
	"capper/internal/capping/redisstore/topology"
	"capper/internal/live"
)

// These constants are the intervals of the background work that reads and packs live change logs (logs of changes to
// sets by API calls).
const (
	renewEvery   = time.Second
	renewTTLs    = 12 * time.Hour
	settleEvery  = 30 * time.Second // retries of unfinished removals
	startForLive = 2                // number of attempts for which a start waits; slower partitions follow later
)

// The method "start" reads live change logs (logs of changes to sets by API calls). The method "start" skips partitions
// without a known node, and partitions in quarantine (no decisions until an operator accepts the loss). The store
// decides about users of a skipped partition only after a later read of the partition's log.
func (l *liveLogs) start(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, startForLive*l.config.Topology.LongestAttempt())
	defer cancel()
	var renewals []*renewal
	for p := range l.logs {
		if l.config.Topology.Route(p) != nil && l.config.Topology.Bar(p) == nil {
			renewals = append(renewals, l.renewSoon(p))
		}
	}
	for _, renewal := range renewals {
		_ = renewal.await(ctx) // a later call or renewal tries again
	}
}

// The method "run" checks the live change logs (logs of changes to sets by API calls) every second in the background,
// and reads changed logs. The method "run" ends when the store is closed.
func (l *liveLogs) run() {
	l.wait.Go(func() {
		ticker := time.NewTicker(renewEvery)
		defer ticker.Stop()
		var touched, settled time.Time
		for {
			select {
			case <-l.ctx.Done():
				return
			case <-ticker.C:
			}
			touch := time.Since(touched) > renewTTLs
			if touch {
				touched = time.Now()
			}
			l.endRestorations()
			l.look(touch)
			if time.Since(settled) > settleEvery {
				settled = time.Now()
				_ = l.settleOwed(l.ctx) // a later attempt follows
			}
		}
	})
}

// The method "look" reads the versions of all live change logs (logs of changes to sets by API calls). The method
// "look" reads the versions of all logs on one node in one pipeline. If the version of a log has changed, look starts a
// read of this log. If the argument "touch" is true, "look" also extends the TTLs of the logs.
func (l *liveLogs) look(touch bool) {
	top := l.config.Topology
	held := map[*topology.Node][]int{}
	for p := range l.logs {
		if top.Bar(p) != nil {
			l.logs[p].doubtful.Store(true)
			continue
		}
		if n := top.Route(p); n != nil {
			held[n] = append(held[n], p)
		}
	}
	done := make(chan struct{}, len(held))
	for n, partitions := range held {
		l.wait.Go(func() {
			l.lookAt(n, partitions, touch)
			done <- struct{}{}
		})
	}
	for range held {
		<-done
	}
}

func (l *liveLogs) lookAt(n *topology.Node, partitions []int, touch bool) {
	ctx, cancel := context.WithTimeout(l.ctx, n.AttemptTime())
	defer cancel()
	pipe := n.Client().Pipeline()
	versions := make([]*redis.StringCmd, len(partitions))
	for i, p := range partitions {
		key := string(script.AppendLiveKey(nil, l.config.Prefixes[p]))
		versions[i] = pipe.HGet(ctx, key, "")
		if touch {
			pipe.PExpire(ctx, key, liveTTL)
		}
	}
	_ = topology.Exec(ctx, pipe)
	for i, p := range partitions {
		version, err := versions[i].Result()
		if err != nil && !errors.Is(err, redis.Nil) { // the topology reports the node's fault
			continue
		}
		if version != l.lists.Version(p) || l.logs[p].doubtful.Load() {
			l.renewSoon(p)
		}
		l.packWhenLeft(p, version)
	}
}

// renewUsers reads the live change logs (logs of changes to sets by API calls) of the given users' partitions. If the
// argument "users" is nil, renewUsers reads the logs of all partitions. If one live change log cannot be read,
// renewUsers still reads the logs of the other partitions.
func (l *liveLogs) renewUsers(ctx context.Context, users []capping.UserID) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.config.Timeout)
		defer cancel()
	}
	renewals := make([]*renewal, len(l.logs))
	for p := range l.logs {
		if users == nil {
			renewals[p] = l.renewSoon(p)
		}
	}
	for _, user := range users {
		if p := l.config.Partition(user); renewals[p] == nil {
			renewals[p] = l.renewSoon(p)
		}
	}
	var first error
	for _, renewal := range renewals {
		if renewal != nil {
			first = cmp.Or(first, renewal.await(ctx))
		}
	}
	return first
}

// The method "await" waits until the renewal or the context ends.
func (r *renewal) await(ctx context.Context) error {
	select {
	case <-r.done: // first, because ctx may have ended too
		return r.err
	default:
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// renewSoon returns a renewal (read of a live change log from Redis) that has not begun yet. The read will include all
// live changes (changes of sets by API calls) that were stored before the call of renewSoon. Concurrent calls of
// renewSoon return the same renewal, so that all of them need only one read from Redis.
func (l *liveLogs) renewSoon(p int) *renewal {
	log := &l.logs[p]
	log.mu.Lock()
	defer log.mu.Unlock()
	if log.next == nil {
		log.next = &renewal{done: make(chan struct{})}
	}
	if !log.running {
		log.running = true
		l.wait.Go(func() { l.renewAll(p) })
	}
	return log.next
}

// renewAll makes renewals of a partition (reads of the partition's live change log) one after another, until no call
// waits for a renewal.
func (l *liveLogs) renewAll(p int) {
	log := &l.logs[p]
	for {
		log.mu.Lock()
		renewal := log.next
		log.next, log.running = nil, renewal != nil
		log.mu.Unlock()
		if renewal == nil {
			return
		}
		ctx, cancel := context.WithTimeout(l.ctx, l.config.Timeout)
		renewal.err = l.renew(ctx, p)
		cancel()
		l.logDamage(log, renewal.err)
		close(renewal.done)
	}
}

// logDamage logs that a record of a live change log (log of changes to sets by API calls) cannot be decoded. The method
// logDamage does not log the same error again.
func (l *liveLogs) logDamage(log *liveLog, err error) {
	var damage *damagedError
	text := ""
	if errors.As(err, &damage) {
		text = err.Error()
	}
	if text != "" && text != log.logged {
		l.config.Logger.Error("changes of sets cannot be read", "error", err)
	}
	log.logged = text
}

// renewAttempts is the maximum number of attempts of a renewal (read of a live change log). A renewal starts again if
// the log changes during the read.
const renewAttempts = 20

// The method "renew" reads and applies the new records of a partition's live change log (log of changes to sets by API
// calls): those that this instance does not have. If Redis has lost live changes that this instance has, for example
// after an accepted loss, "renew" stores the lost changes again.
func (l *liveLogs) renew(ctx context.Context, p int) error {
	if err := l.logs[p].restoring(p); err != nil {
		return err
	}
	for range renewAttempts {
		known := l.lists.Version(p)
		asked := known
		doubtful := l.logs[p].doubtful.Swap(false)
		if doubtful {
			asked = ""
		}
		done, err := l.renewOnce(ctx, p, known, asked)
		if doubtful && (err != nil || !done) {
			l.logs[p].doubtful.Store(true)
		}
		if done || err != nil {
			return err
		}
	}
	return fmt.Errorf(
		"partition %d of Redis receives changes of sets (named groups of users) faster than this instance reads them",
		p)
}

// renewOnce makes one attempt to read the live change log (log of changes to sets by API calls) and to apply the
// records. The argument "known" of renewOnce is the version in memory. If the argument "asked" of renewOnce equals
// "known", renewOnce reads only later records; if "asked" is "", it reads the whole log. If renewOnce returns false and
// no error, the caller must call renewOnce again.
func (l *liveLogs) renewOnce(ctx context.Context, p int, known, asked string) (done bool, err error) {
	read, err := l.read(ctx, p, asked, "")
	if err != nil || read == nil {
		return false, err
	}
	confirm := l.logs[p].sees(read.restoring)
	if confirm && asked != "" {
		l.logs[p].doubtful.Store(true) // the next attempt reads the whole log
		return false, nil
	}
	if read.kind == script.LiveLatest && asked == known {
		return true, nil
	}
	if read.kind != script.LiveAfter && (known != "" || confirm) {
		l.owe(p, l.lists.AllFreed(), read.freed)
		if lost := l.lostFrom(p, read); len(lost) > 0 {
			return false, l.heal(ctx, p, lost)
		}
	}
	if confirm {
		return l.applyUnderRestoration(ctx, p, read)
	}
	l.applying.Lock()
	defer l.applying.Unlock()
	if l.lists.Version(p) == known {
		l.lists.ApplyUpTo(p, read.version, read.freed, read.records())
		return true, nil
	}
	// A change by this instance has changed the version in memory during the read. The next check compares the new
	// version with the version in Redis.
	l.lists.Drop(read.freed)
	l.lists.Apply(read.records()...)
	return true, nil
}

// applyUnderRestoration applies a whole live change log during a restoration (all instances store their live changes
// again), and confirms that the log has every live change of this instance. The method applyUnderRestoration sets the
// known version to "", so that every decision needs a renewal (read of the log). Each renewal returns an error until
// the restoration has ended.
func (l *liveLogs) applyUnderRestoration(ctx context.Context, p int, read *liveReading) (done bool, err error) {
	l.applying.Lock()
	l.lists.ApplyUpTo(p, "", read.freed, read.records())
	l.applying.Unlock()
	if err := l.confirm(ctx, p, read.restoring); err != nil {
		return false, err
	}
	return false, l.logs[p].restoring(p) // nil: the restoration has ended meanwhile
}

// The method "heal" stores the live changes (changes by API calls) in the argument "lost" in Redis again. The argument
// "lost" holds changes that this instance has in memory, but that the log in Redis has lost.
func (l *liveLogs) heal(ctx context.Context, p int, lost []*live.Record) error {
	n := 0
	err := l.config.Quietly(func() *dispatch.Run {
		r := l.config.Dispatcher.NewRun(nil, true)
		r.Faults.What = "changes of sets that were lost are"
		for _, record := range lost {
			n += record.Len()
			r.Add(l.newAppend(record), p)
		}
		r.Do(ctx)
		return r
	})
	if err == nil {
		l.config.Logger.Warn("changes of sets that Redis had lost are stored again", "partition", p, "changes", n)
	}
	return err
}

// lostFrom returns the live changes (changes by API calls) of the partition's users that this instance has and the log
// in Redis lacks. The argument "whole" of lostFrom is the whole log in Redis.
func (l *liveLogs) lostFrom(p int, whole *liveReading) (lost []*live.Record) {
	stored := whole.lists()
	for _, record := range l.lists.Records(func(user capping.UserID) bool { return l.config.Partition(user) == p }) {
		left := &live.Record{Set: record.Set, By: record.By}
		for i := range record.Runs {
			run := live.Run{At: record.Runs[i].At}
			for kind, users := range record.Runs[i].Users {
				for _, user := range users {
					if lacks(stored, record.Set, user, run.At, live.Kind(kind)) {
						run.Users[kind] = append(run.Users[kind], user)
					}
				}
			}
			left.Runs = append(left.Runs, run)
		}
		if left.Len() > 0 {
			lost = append(lost, left)
		}
	}
	return lost
}

// The function "lacks" reports whether the stored lists lack a live change (change by an API call): they have no change
// of the user, or only an older change.
func lacks(stored *live.Lists, set string, user capping.UserID, at capping.Instant, kind live.Kind) bool {
	of, ok := stored.Of(set, user)
	if !ok {
		return kind != live.Forgotten && at > stored.Freed(set) // compaction removes changes of the kind Forgotten
	}
	return at > of.At || at == of.At && kind > of.Kind
}

// A liveReading holds a live change log (log of changes to sets by API calls) that was read from Redis: the whole log,
// or the records after a version.
type liveReading struct {
	kind      byte
	version   string // version of the live change log after the latest record in fields
	restoring string // token of the restoration in progress; "": none
	metaText  string
	meta      script.LiveMeta
	freedText string
	freed     map[string]capping.Instant
	fields    []liveField
}

// A liveField is one record of a live change log (log of changes to sets by API calls) in decoded form.
type liveField struct {
	script.LiveField
	record *live.Record // nil: a record without changes
}

func (r *liveReading) records() (records []*live.Record) {
	for i := range r.fields {
		if record := r.fields[i].record; record != nil {
			records = append(records, record)
		}
	}
	return records
}

// The method "lists" returns the changes in a whole live change log (log of changes to sets by API calls) as
// live.Lists.
func (r *liveReading) lists() *live.Lists {
	lists := live.New(0)
	lists.Drop(r.freed)
	lists.Apply(r.records()...)
	return lists
}

// The method "read" returns the records of the partition's live change log (log of changes to sets by API calls) after
// the version "known". If "known" is "", "read" returns the whole log. The argument "from" of the method "read" is the
// place in the log where reading begins; "" means the beginning. If another instance has packed the log during the
// read, "read" returns nil, and the caller must start again. The method "read" waits until replicas have confirmed the
// log, so that a failover loses no returned record.
func (l *liveLogs) read(ctx context.Context, p int, known, from string) (*liveReading, error) {
	var whole *liveReading
	for {
		page, err := l.readPage(ctx, p, known, from)
		if err != nil {
			return nil, err
		}
		if page.Kind == script.LiveTorn || whole != nil && page.MetaText != whole.metaText {
			return nil, nil
		}
		if whole == nil {
			whole = &liveReading{kind: page.Kind, restoring: page.Restoring, metaText: page.MetaText, meta: page.Meta,
				freedText: page.Freed}
			if whole.freed, err = live.DecodeFreed([]byte(page.Freed)); err != nil {
				return nil, l.damage(p, "f", err)
			}
		}
		whole.version = page.Version
		if err := l.add(whole, p, page); err != nil {
			return nil, err
		}
		if page.Next == "" {
			l.logs[p].packed.Store(int64(page.Meta.Packed))
			return whole, nil
		}
		known, from = page.Version, page.Next
	}
}

// The method "add" decodes one page of records of the live change log (log of changes to sets by API calls), and adds
// the records to the reading.
func (l *liveLogs) add(to *liveReading, p int, page *script.LivePage) error {
	for _, field := range page.Fields {
		decoded := liveField{LiveField: field}
		if field.Content != "" {
			var err error
			if decoded.record, err = live.DecodeRecord([]byte(field.Content)); err != nil {
				return l.damage(p, field.Name, err)
			}
		}
		to.fields = append(to.fields, decoded)
	}
	return nil
}

// The method "damage" returns the error for a stored live change (change of a set by an API call) that cannot be
// decoded. While a live change cannot be decoded, the users of its partition stay Unavailable. A decision without the
// change could allow a send to a user who objected.
func (l *liveLogs) damage(p int, field string, err error) error {
	return &damagedError{key: string(script.AppendLiveKey(nil, l.config.Prefixes[p])), field: field, err: err}
}

// A damagedError reports that a stored live change (change by an API call) cannot be decoded.
type damagedError struct {
	key, field string
	err        error
}

func (e *damagedError) Error() string {
	return fmt.Sprintf("field %q of the Redis key %s: %v", e.field, e.key, e.err)
}

func (e *damagedError) Unwrap() error { return e.err }

// readPage reads one page (a limited number of records) of the partition's live change log.
func (l *liveLogs) readPage(ctx context.Context, p int, known, from string) (*script.LivePage, error) {
	op := &pageOperation{logs: l, known: known, from: from}
	err := l.config.Quietly(func() *dispatch.Run {
		r := l.config.Dispatcher.NewRun(nil, true)
		r.Faults.What = "some changes of sets are"
		r.Add(op, p)
		r.Do(ctx)
		return r
	})
	return op.page, err
}

// A pageOperation reads one page (a limited number of records) of a live change log.
type pageOperation struct {
	logs        *liveLogs
	known, from string
	page        *script.LivePage
}

// The method Encode sets the arguments of live.lua.
func (o *pageOperation) Encode(c *dispatch.Command) {
	config := &o.logs.config
	c.Args.LiveRead(config.Scripts.Live, config.Prefixes[c.Partition], o.known, o.from)
}

// The method Stamp does nothing, because the command of a pageOperation contains no time.
func (o *pageOperation) Stamp(*dispatch.Command, dispatch.Stamp) {}

// The method Apply decodes the page.
func (o *pageOperation) Apply(c *dispatch.Command) (n int, err error) {
	o.page, err = script.DecodeLivePage(c.List)
	return 0, err
}
