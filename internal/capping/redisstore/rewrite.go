package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/script"
)

// rewriter takes the logs to the store's format, where that says how: it walks
// over every bucket that there can be, row by row, while the store serves.
type rewriter struct {
	store   *Store
	scripts map[int]*script.Script // by the format that they lead to
	last    uint32                 // user that there can be
	after   time.Duration          // the store has moved, so that no instance writes the format before any more
	percent atomic.Int64           // of the walk under way; rests at idle
	cancel  context.CancelFunc
	wait    sync.WaitGroup
}

const (
	idle         = -1
	rewriteRows  = 256             // of a command
	rewriteEvery = time.Second     // between looks at whether there is something to do
	rewriteLease = 2 * time.Minute // without a sign of who rewrites, another instance goes on
)

func newRewriter(s *Store, formats script.Formats) *rewriter {
	w := &rewriter{store: s, scripts: formats.Rewrites(), last: cmp.Or(s.config.lastUser, math.MaxUint32),
		after: cmp.Or(s.config.rewriteAfter, silentFor), cancel: func() {}}
	w.percent.Store(idle)
	return w
}

// run does what there is to do until close.
func (w *rewriter) run() {
	if len(w.scripts) == 0 {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.wait.Go(func() {
		for ctx.Err() == nil {
			if err := w.rewrite(ctx); err != nil && ctx.Err() == nil {
				w.store.config.Logger.Warn("the logs are not rewritten yet", "error", err)
			}
			w.percent.Store(idle)
			pause(ctx, rewriteEvery)
		}
	})
}

func (w *rewriter) close() {
	w.cancel()
	w.wait.Wait()
}

// warning says how far the walk is; "" when there is none.
func (w *rewriter) warning() string {
	percent := w.percent.Load()
	if percent == idle {
		return ""
	}
	return fmt.Sprintf("the logs are being rewritten into format %d: %d %% done", w.store.fleet.seen.Load().format,
		percent)
}

// rewrite takes the logs from format to format, up to that of the store.
func (w *rewriter) rewrite(ctx context.Context) error {
	now := w.store.fleet.seen.Load().format
	for version := w.store.marker.Oldest(); version <= now; version++ {
		if one := w.scripts[version]; one != nil {
			if err := w.walk(ctx, version, one); err != nil {
				return err
			}
		}
	}
	return nil
}

// walk goes on where the record says that somebody ended.
func (w *rewriter) walk(ctx context.Context, version int, one *script.Script) error {
	rows := w.store.keyspace.Rows(w.last)
	for {
		p, err := w.progress(ctx)
		switch {
		case err != nil:
			return err
		case p.version > version || p.version == version && p.row >= rows:
			return nil
		case p.version < version:
			return w.note(ctx, version, 0)
		case p.row == 0 && time.Since(p.at) < w.after:
			return nil
		case p.row > 0 && p.by != w.store.fleet.id && time.Since(p.at) < rewriteLease:
			return nil
		}
		w.percent.Store(int64(p.row) * 100 / int64(rows))
		began, end := time.Now(), min(p.row+rewriteRows, rows)
		if err := w.buckets(ctx, one, p.row, end); err != nil {
			return err
		}
		if err := w.note(ctx, version, end); err != nil {
			return err
		}
		pause(ctx, time.Since(began)) // at most half of the time
	}
}

// buckets rewrites those of the rows.
func (w *rewriter) buckets(ctx context.Context, one *script.Script, first, end uint32) error {
	s := w.store
	open := make([]*rewriteOperation, s.keyspace.Partitions)
	for p := range open {
		open[p] = &rewriteOperation{store: s, script: one, partition: p, first: first, end: end}
	}
	for len(open) > 0 {
		if err := s.halted(); err != nil {
			return err
		}
		r := s.dispatch.NewRun(nil, true)
		for _, o := range open {
			r.Add(o, o.partition)
		}
		r.Do(ctx)
		err := r.Faults.Err()
		s.dispatch.Recycle(r)
		if err != nil {
			return err
		}
		rest := open[:0]
		for _, o := range open {
			if o.first < o.end {
				rest = append(rest, o)
			}
		}
		open = rest
	}
	return nil
}

// rewriteOperation rewrites a partition's buckets of the rows from first to
// before end.
type rewriteOperation struct {
	store      *Store
	script     *script.Script
	partition  int
	first, end uint32
}

// Encode sets the arguments.
func (o *rewriteOperation) Encode(c *dispatch.Command) {
	c.Args.Rewrite(o.script, o.store.keyspace, o.store.prefixes[o.partition], o.partition, o.first, o.end)
}

// Stamp has nothing to do: a rewriting may come late, and twice.
func (o *rewriteOperation) Stamp(*dispatch.Command, dispatch.Stamp) {}

// Apply counts what was done.
func (o *rewriteOperation) Apply(c *dispatch.Command) (int, error) {
	n, err := script.DecodeRewritten(c.Reply, int(o.end-o.first))
	o.first += uint32(n)
	return 0, err
}

// progress is how far whom has rewritten into a format.
type progress struct {
	version int
	row     uint32
	by      string
	at      time.Time
}

// rewriting is the field of the store's record that holds it.
const rewriting = "rewriting"

func (w *rewriter) progress(ctx context.Context) (p progress, err error) {
	n := w.store.top.Route(w.store.keyspace.FormatPartition())
	if n == nil {
		return p, fault.ErrNoRoute
	}
	fields, err := n.Client().HMGet(ctx, w.store.marker.StoreKey(), rewriting).Result()
	if err != nil {
		return p, err
	}
	text, _ := fields[0].(string)
	if text == "" {
		return p, nil
	}
	var ms int64
	if _, err := fmt.Sscan(text, &p.version, &p.row, &p.by, &ms); err != nil {
		return p, errors.Join(script.ErrReply, err)
	}
	p.at = time.UnixMilli(ms)
	return p, nil
}

func (w *rewriter) note(ctx context.Context, version int, row uint32) error {
	n := w.store.top.Route(w.store.keyspace.FormatPartition())
	if n == nil {
		return fault.ErrNoRoute
	}
	text := fmt.Sprint(version, " ", row, " ", w.store.fleet.id, " ", strconv.FormatInt(time.Now().UnixMilli(), 10))
	return n.Client().HSet(ctx, w.store.marker.StoreKey(), rewriting, text).Err()
}
