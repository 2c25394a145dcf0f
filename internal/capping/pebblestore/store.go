package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
	"capper/internal/messages"
	"capper/internal/pacing"
)

// Store is a durable capping.Store that is embedded in the process, without a server. A Store is safe for concurrent
// use.
type Store struct {
	db      *database.DB
	clock   func() time.Time
	logger  *slog.Logger
	metrics *metrics
	memory  *capping.MessageMemory

	stripes  [stripeCount]stripe
	runs     runs
	pacers   *pacerLogs
	counts   *messageCounts
	changes  *changeLog
	calls    sync.Pool // of *call
	workers  sync.Pool // of *worker
	retained notedRetentions
	channels notedChannels
	messages sync.Mutex // protects writes of message texts
	stop     context.CancelFunc
}

var (
	_ capping.Store    = (*Store)(nil)
	_ pacing.Store     = (*Store)(nil)
	_ messages.Store   = (*Store)(nil)
	_ capping.Merger   = (*Store)(nil)
	_ capping.Archiver = (*Store)(nil)
)

// The function Open opens the store in a directory. If the directory does not exist, Open creates the directory. The
// function Open returns an error if another process has the store open, the format is unknown, the disk is full, or ctx
// ends. If Open returns because ctx has ended, the process should exit, because Pebble goes on opening the database and
// cannot be stopped.
func Open(ctx context.Context, config Config) (*Store, error) {
	s, err := open(ctx, config.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("embedded store %q: %w", config.Path, err)
	}
	return s, nil
}

func open(ctx context.Context, config Config) (*Store, error) {
	s := newStore(config)
	var err error
	if s.db, err = database.Open(ctx, config.database(s.metrics)); err != nil {
		return nil, err
	}
	s.makeStripes(config.CacheBytes / 4 * 3 / stripeCount)
	err = s.db.Rescue(ctx, s.load)
	if err == nil {
		err = s.metrics.register(config.Registerer)
	}
	if err != nil {
		return nil, errors.Join(err, s.db.Close())
	}
	if upgrade := s.db.Upgrade(); upgrade != nil {
		s.logger.Warn("the store now rewrites its logs into a newer format: older versions of "+
			"capper can no longer open the store",
			"from", upgrade.From, "to", upgrade.To)
	}
	if s.db.Created() {
		s.logger.Warn("an empty embedded store was created: every user may receive messages", "path", config.Path)
	} else {
		s.logger.Info("embedded store open", "path", config.Path)
	}
	if restored := s.db.Restored(); restored != nil {
		s.logger.Warn("the embedded store was restored from a backup: later sends are unknown",
			"missing_from", restored.Until.UTC().Format(time.RFC3339), "missing_until",
			restored.At.UTC().Format(time.RFC3339))
	}
	tending, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.db.Go(func() { s.keepTending(tending, config) })
	return s, nil
}

// The method "load" loads counts, pacers, live changes (changes by API calls), retentions and channels from the
// database.
func (s *Store) load() (err error) {
	s.counts = newMessages(s.db, s.logger, s.memory)
	if s.pacers, err = openPacerLogs(s.db); err != nil {
		return err
	}
	if s.changes, err = openChanges(s.db, s.logger); err != nil {
		return err
	}
	return errors.Join(s.loadRetentions(), s.loadChannels())
}

func newStore(config Config) *Store {
	s := &Store{clock: config.Clock, logger: config.Logger, memory: capping.NewMessageMemory(config.Clock),
		metrics: newMetrics()}
	s.calls.New = func() any { return new(call) }
	s.workers.New = func() any { return &worker{reader: s.db.NewReader()} }
	return s
}

// ClockTolerance returns 0, because one process has one clock.
func (s *Store) ClockTolerance() time.Duration { return 0 }

// Health returns the store's state from memory, without a read from the disk. The state is "down" if the disk has
// refused a write, or if the clock is wrong. The state is "degraded" if tables cannot be written or if damaged logs are
// known. Without one of these faults, the state is "ok".
func (s *Store) Health(ctx context.Context) capping.Health {
	health := s.db.Health(ctx)
	if warning := s.retained.current().warning(capping.InstantOf(s.clock())); warning != "" {
		health.Warnings = append(health.Warnings, warning)
	}
	if warning := s.missing(capping.InstantOf(s.clock())); warning != "" {
		health.Warnings = append(health.Warnings, warning)
	}
	if s.changes.lost != "" {
		health.Warnings = append(health.Warnings, s.changes.lost)
	}
	return health
}

// TakePermits takes permits from pacers (named rate limits) and adds the permits to the pacers' logs; see pacing.Store.
func (s *Store) TakePermits(ctx context.Context, ask *pacing.Ask) (pacing.Grant, error) {
	return s.pacers.TakePermits(ctx, ask)
}

// ReturnPermits returns the unused permits of a request to its pacers; see pacing.Store.
func (s *Store) ReturnPermits(ctx context.Context, ask *pacing.Ask, used int) (pacing.Returned, error) {
	return s.pacers.ReturnPermits(ctx, ask, used)
}

// ForgetPacer resets a pacer: the store removes all logs of the pacer; see pacing.Store. The store keeps the logs of
// all groups of pacers together, so ForgetPacer ignores the group.
func (s *Store) ForgetPacer(ctx context.Context, pacer, group string) error {
	return s.pacers.ForgetPacer(ctx, pacer, group)
}

// KeepLease begins or extends the lease (time limit for unused permits) of a permit request; see pacing.Leases.
func (s *Store) KeepLease(ctx context.Context, group string, r pacing.Request, lasts time.Duration, call []byte) (
	pacing.LeaseState, error) {
	return s.pacers.KeepLease(ctx, group, r, lasts, call)
}

// EndedLeases returns the ended leases (time limits for unused permits) of permit requests; see pacing.Leases.
func (s *Store) EndedLeases(ctx context.Context, group string, most int) ([]pacing.Lease, error) {
	return s.pacers.EndedLeases(ctx, group, most)
}

// RemoveLease removes the ended lease (time limit for unused permits) of a permit request; see pacing.Leases.
func (s *Store) RemoveLease(ctx context.Context, group string, r pacing.Request) error {
	return s.pacers.RemoveLease(ctx, group, r)
}

// The method "missing" returns a warning for a store restored from a backup: the store lacks sends and set changes that
// decisions may still need. If a restored store lacks no needed data, the method "missing" returns "".
func (s *Store) missing(now capping.Instant) string {
	restored := s.db.Restored()
	if restored == nil {
		return ""
	}
	unknown, millis := "sends", s.retained.current().longest(now).millis
	if s.db.HasChanges() {
		unknown, millis = "sends and changes to sets", max(millis, missingChanges.Milliseconds())
	}
	if now-capping.InstantOf(restored.At) > capping.Instant(millis) {
		return ""
	}
	return fmt.Sprintf("store restored from a backup: %s from %s to %s are unknown", unknown,
		restored.Until.UTC().Format(time.RFC3339), restored.At.UTC().Format(time.RFC3339))
}

// missingChanges is the time for which a restored store warns operators about missing set changes. Within the time
// missingChanges, a build of the segments should include the missing set changes.
const missingChanges = 7 * 24 * time.Hour

// IDs returns the kind of the users' ids in the store. The zero IDs means dense ids (32-bit integers).
func (s *Store) IDs() IDs { return s.db.IDs() }

// Identity returns the id and the newest identity mark of the store (a number that increases while the store is in
// use). If the directory is an older copy of the store, its identity mark (counter that exposes an old copy) is lower.
func (s *Store) Identity() (id string, mark uint64) { return s.db.Identity() }

// The method Backup writes an archive of the store's current data while other calls continue. The archive contains the
// data of all calls that returned before the call of Backup. If Backup returns an error, the written bytes are useless.
// The argument "channels" of Backup holds the number of each channel of the policy, by the channel's name.
func (s *Store) Backup(ctx context.Context, to io.Writer, channels map[string]capping.Channel) error {
	var made database.Copy
	end := func() error { return nil }
	err := s.db.Write(context.WithoutCancel(ctx), func() (err error) { // a started copy must also be removed
		made, end, err = s.db.Copy()
		return err
	})
	if err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	manifest := &database.Manifest{Store: made.ID, Mark: made.Mark, At: made.At, Channels: map[string]uint8{},
		IDs: made.IDs.Pointer()}
	for name, number := range channels {
		manifest.Channels[name] = uint8(number)
	}
	if err := errors.Join(database.Write(to, made.Dir, manifest), end()); err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	return nil
}

// The method Close stops the background work, waits for running calls whose caller has stopped waiting, and closes the
// database. The method Close waits up to half a minute, or up to two seconds if the store is out of service. If closing
// takes longer, Close freezes the files instead of closing Pebble. If Close freezes the files, the writes of all calls
// that have already returned stay on the disk.
func (s *Store) Close() error {
	s.stop()
	return s.db.Close()
}
