package journal

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"capper/internal/audit"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/objects"
)

// Config holds the settings of a Journal.
type Config struct {
	To         string           // a directory or s3://bucket/prefix. Required
	S3         objects.S3Config // access to S3
	Spool      string           // for S3: the directory of records that wait for upload
	Roll       time.Duration    // time after which a file ends; 0: 10 minutes
	MaxWaiting int64            // bytes of files that may wait for upload; 0: 10 GiB
	Widening   time.Duration    // widening of the store's rolling windows, see capping.Widening
	IDs        audit.IDs        // ids of the users
	Clock      func() time.Time // nil: time.Now
	Logger     *slog.Logger     // nil: no log
	// Registerer registers the journal's metrics. If Registerer is nil, the journal has no metrics.
	Registerer prometheus.Registerer
}

func (c Config) withDefaults() (Config, error) {
	if c.To == "" {
		return c, errors.New("audit journal: Config.To (location of the audit) must be set")
	}
	if objects.IsURL(c.To) && c.Spool == "" {
		return c, errors.New(
			"audit journal: Config.Spool (local directory) must be set, because Config.To is not a directory")
	}
	c.Roll = cmp.Or(c.Roll, 10*time.Minute)
	c.MaxWaiting = cmp.Or(c.MaxWaiting, 10<<30)
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// These constants limit the journal's memory and file sizes, and set the intervals of its background work.
const (
	flushEvery = time.Second
	maxPending = 64 << 20 // maximum bytes of records in memory; further records are lost
	maxFile    = 64 << 20 // size in bytes from which the next file begins
)

// Journal records calls in the audit. A Journal is safe for concurrent use. The methods of a nil Journal do nothing.
type Journal struct {
	Config
	instance string
	place    objects.Location
	home     string // the parent of all spool directories

	beside  beside
	sorters sorters
	tape    tape
	waiting atomic.Int64 // bytes of files that wait for upload
	state   state

	writing writer // guarded by flushing, except its name
	carrier carrier

	erasures atomic.Uint64
	claimed  atomic.Bool // the location is known to have the journal's kind of ids

	flushing sync.Mutex // guards writing
	kick     chan struct{}
	cancel   context.CancelFunc
	done     sync.WaitGroup
	closing  sync.Once
	closeErr error
}

// Open starts a journal. Open does not wait for the disk, and waits only briefly for the audit location. The method
// Status reports errors of the disk and of the audit location that occur after Open has returned. If the records at the
// audit location have another kind or key of user ids, Open returns an error that wraps an *audit.OtherIDsError.
func Open(ctx context.Context, cfg Config) (*Journal, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	place, err := objects.Open(ctx, cfg.To, cfg.S3)
	if err != nil {
		return nil, fmt.Errorf("audit.to: %w", err)
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	j := &Journal{Config: cfg, instance: hex.EncodeToString(id[:]), place: place, home: cfg.Spool,
		kick: make(chan struct{}, 1)}
	if !objects.IsURL(cfg.To) {
		j.home = filepath.Join(cfg.To, filepath.FromSlash(audit.OpenPrefix))
	}
	j.beside.idle = sync.NewCond(&j.beside.mu)
	j.sorters.wide = !cfg.IDs.Dense()
	j.tape = tape{instance: j.instance, widening: cfg.Widening, ids: cfg.IDs, next: 1, clock: cfg.Clock,
		waiting: j.waiting.Load, most: cfg.MaxWaiting}
	if err := j.claim(ctx); errors.As(err, new(*audit.OtherIDsError)) {
		return nil, err
	}
	j.writing = writer{room: room{dir: filepath.Join(j.home, j.instance), instance: j.instance},
		policies: map[string][]byte{}}
	j.carrier = carrier{Journal: j}
	if cfg.Registerer != nil {
		cfg.Registerer.MustRegister(newMetrics(j))
	}
	ctx, j.cancel = context.WithCancel(context.Background())
	j.done.Add(2)
	go j.flushLoop(ctx)
	go j.carrier.loop(ctx)
	return j, nil
}

// Instance returns the name of the service instance under which the journal writes its records.
func (j *Journal) Instance() string { return j.instance }

// Room returns the path of the journal's spool directory, which holds the audit file that is being written and the
// files that wait for upload.
func (j *Journal) Room() string { return j.writing.dir }

// The method Filter writes the audit record of a filter call after the service has decided the call. The method Filter
// computes some fields of the record r from the decisions; the caller of Filter sets all other fields. Filter returns
// immediately; the caller must not change the record r or the decisions d afterwards.
func (j *Journal) Filter(r *audit.Record, d *capping.Decisions) {
	if j == nil || len(d.Users) == 0 {
		return
	}
	j.beside.begin(func() {
		s := j.sorters.take()
		defer j.sorters.keep(s)
		r.Kind, r.Generation, r.Config = audit.Filter, d.Generation, d.Policy.Version
		r.Groups = s.groupsOf(d)
		j.tape.append(r)
	})
}

// The method Release writes the audit record of a release (removal of recorded sends), with the result for each user.
func (j *Journal) Release(r *audit.Record, users []capping.UserID, results []capping.Released) {
	if j == nil || len(users) == 0 {
		return
	}
	j.beside.begin(func() {
		s := j.sorters.take()
		defer j.sorters.keep(s)
		r.Kind, r.Groups = audit.Release, s.groupsOfRelease(users, results)
		j.tape.append(r)
	})
}

// The method Permits writes the audit record of a permit request. The caller of Permits sets all fields of the record
// r.
func (j *Journal) Permits(r *audit.Record) {
	if j == nil {
		return
	}
	r.Kind = audit.Pace
	j.tape.append(r)
}

// The method Change writes the audit record of a call that changed a set. The caller of Change sets all fields of the
// record r except Kind and Groups. The argument "added" of Change lists the users whom the call added to the set, and
// "removed" the users whom the call removed. The argument "unavailable" of Change lists the users for whom the result
// is unknown. Each list must be in strictly ascending order, and no user may be in two lists. The method Change returns
// immediately; the caller must not change the record r or the lists of users afterwards.
func (j *Journal) Change(r *audit.Record, added, removed, unavailable []capping.UserID) {
	if j == nil {
		return
	}
	j.beside.begin(func() {
		r.Kind = audit.Change
		for _, g := range []struct {
			outcome audit.Outcome
			users   []capping.UserID
		}{{audit.Added, added}, {audit.Removed, removed}, {audit.ChangeUnavailable, unavailable}} {
			if len(g.users) > 0 {
				r.Groups = append(r.Groups, j.group(g.outcome, g.users))
			}
		}
		j.tape.append(r)
	})
}

// The method group returns the group of an audit record for users with the same outcome. The users must be in strictly
// ascending order.
func (j *Journal) group(outcome audit.Outcome, users []capping.UserID) audit.Group {
	if !j.IDs.Dense() {
		return audit.Group{Outcome: outcome, Images: users}
	}
	return audit.Group{Outcome: outcome, Users: bitmap.OfSorted(capping.AppendDense(nil, users))}
}

// Flush waits until the disk has all audit records that are older than the call of Flush. If the journal cannot write
// the records, Flush returns an error.
func (j *Journal) Flush(ctx context.Context) error {
	if j == nil {
		return nil
	}
	before, err := j.settle(ctx)
	if err != nil {
		return err
	}
	return j.flush(before, false)
}

// Close writes the remaining audit records, ends the audit file, and uploads files until ctx ends. If Close could not
// upload a file, the next service instance uploads the file at its start.
func (j *Journal) Close(ctx context.Context) error {
	if j == nil {
		return nil
	}
	j.closing.Do(func() { j.closeErr = j.close(ctx) })
	return j.closeErr
}

func (j *Journal) close(ctx context.Context) error {
	before, waited := j.settle(ctx)
	j.cancel()
	j.done.Wait()
	flushed := j.flush(before, true)
	if err := j.carrier.deliver(ctx); err != nil && ctx.Err() == nil {
		j.Logger.Warn("the last audit files will be uploaded at the next start", "error", err)
	}
	j.carrier.leave()
	j.writing.leave()
	return errors.Join(waited, flushed)
}

func (j *Journal) flushLoop(ctx context.Context) {
	defer j.done.Done()
	ticker := time.NewTicker(flushEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if before, err := j.settle(ctx); err == nil {
				_ = j.flush(before, false) // the state keeps the error
			}
		}
	}
}

// deliverSoon wakes the goroutine that uploads audit files.
func (j *Journal) deliverSoon() {
	select {
	case j.kick <- struct{}{}:
	default:
	}
}
