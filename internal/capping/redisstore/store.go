package redisstore

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/script"
	"capper/internal/capping/redisstore/topology"
)

// Store keeps logs in Redis. It is safe for concurrent use.
type Store struct {
	config   Config
	layout   script.Keyspace
	prefixes []string // of keys, by partition
	scripts  scripts
	top      *topology.Topology
	senders  senders
	metrics  *metrics
	memory   *capping.MessageMemory
	warnings []string
	marker   script.Marker
	fleet    *fleet
	mismatch atomic.Pointer[script.FormatError]
	trouble  trouble
	runs     sync.Pool
}

var _ capping.Store = (*Store)(nil)

// Open connects, checks what the promises rest on and returns a store. It
// refuses servers that would break a promise; what only costs memory or could
// not be checked becomes a warning, logged and shown by Health.
func Open(ctx context.Context, config Config) (*Store, error) {
	return open(ctx, config, script.Standard)
}

func open(ctx context.Context, config Config, l script.Keyspace) (*Store, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{config: config, memory: capping.NewMessageMemory()}
	if s.metrics, err = newMetrics(config.Registerer); err != nil {
		return nil, err
	}
	s.place(l)
	s.fleet = newFleet(s)
	ctx, cancel := context.WithTimeout(ctx, config.Timeout)
	defer cancel()
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// place sets where everything is: keys, scripts, and the servers that hold them.
func (s *Store) place(l script.Keyspace) {
	s.layout, s.prefixes, s.scripts = l, l.Prefixes(s.config.Namespace), newScripts()
	s.marker = script.NewMarker(l, s.config.Namespace)
	var partitions []topology.Partition
	for p, prefix := range append(slices.Clone(s.prefixes), s.marker.Key+":") {
		partitions = append(partitions, topology.Partition{Slot: l.Slot(p), Prefix: prefix})
	}
	s.top = topology.New(s.config.topology(partitions, int(l.BucketSize)+1, s.scripts.sources()))
	s.senders.config = &s.config
}

func (s *Store) start(ctx context.Context) error {
	silent, err := s.top.Discover(ctx)
	if err != nil {
		return s.top.Explain(ctx, err)
	}
	warnings, err := s.top.Check(ctx)
	if err != nil {
		return err
	}
	s.warnings = append(silent, warnings...)
	for _, warning := range s.warnings {
		s.config.Logger.Warn("Redis start-up check", "warning", warning)
	}
	s.top.Run()
	if err := s.fleet.start(ctx); err != nil {
		return s.top.Explain(ctx, err)
	}
	s.fleet.run()
	return nil
}

// ClockTolerance is Config.ClockSkew.
func (s *Store) ClockTolerance() time.Duration { return s.config.ClockSkew }

// Close ends the connections and every goroutine.
func (s *Store) Close() error {
	s.fleet.close()
	err := s.top.Close()
	s.senders.wait.Wait()
	return err
}

func (s *Store) newRun(j job, durable bool) *run {
	r, _ := s.runs.Get().(*run)
	if r == nil {
		r = &run{store: s, inbox: inbox{signal: make(chan struct{}, 1)}}
	}
	r.job, r.most, r.durable = j, callUsers, durable && !s.config.ReplicaAcks.None()
	return r
}

// recycle keeps the buffers of a run of which no lane holds a call any more.
func (s *Store) recycle(r *run) {
	if r.flying == 0 && len(r.waiting) == 0 && !r.over.Load() && len(r.plan.Items) <= recycledUsers {
		r.reset()
		s.runs.Put(r)
	}
}

// recycledUsers bounds what a recycled run keeps.
const recycledUsers = 1 << 17

// do runs r until it is settled or time is up.
func (s *Store) do(ctx context.Context, r *run) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.config.Timeout)
		defer cancel()
	}
	if ctx.Err() != nil {
		r.abandon(ctx)
		return
	}
	r.loop(ctx)
}

// settled does work, unless the store is halted, and turns the faults of its
// run into one error.
func (s *Store) settled(work func() (*run, error)) error {
	if err := s.halted(); err != nil {
		return err
	}
	r, err := work()
	if err != nil {
		return err
	}
	s.metrics.faults(&r.faults)
	err = r.faults.err()
	s.trouble.note(&r.faults, err)
	s.recycle(r)
	return err
}

// halted is why the store decides nothing, or nil.
func (s *Store) halted() error {
	if m := s.mismatch.Load(); m != nil {
		return m
	}
	return s.fleet.seen.Load().channel
}

// commandJob is a single command and its reply.
type commandJob struct {
	args  []string
	reply string
	null  bool
	done  bool
}

func (j *commandJob) encode(c *call) { c.args.Set(j.args...) }
func (j *commandJob) stamp(*call)    {}
func (j *commandJob) apply(c *call) (int, error) {
	j.reply, j.null, j.done = c.reply, c.null, true
	return 0, nil
}

func (s *Store) command(partition int, args ...string) (*call, *commandJob) {
	j := &commandJob{args: args}
	c := &call{job: j, partition: partition}
	j.encode(c)
	return c, j
}

func (s *Store) key(user capping.UserID) (partition int, key, field string) {
	partition = s.layout.Partition(user)
	key = string(script.AppendKey(nil, s.prefixes[partition], s.layout.Bucket(user)))
	return partition, key, strconv.Itoa(int(s.layout.Field(user)))
}

// eraseJob removes the log of one user.
type eraseJob struct {
	commandJob
	script     *script.Script
	key, field string
	skew       time.Duration
}

func (j *eraseJob) encode(c *call) { c.args.Erase(j.script, j.key, j.field) }
func (j *eraseJob) stamp(c *call)  { c.args.StampErase(c.now, j.skew) }

// Erase removes the user's log.
func (s *Store) Erase(ctx context.Context, user capping.UserID) error {
	return s.settled(func() (*run, error) {
		partition, key, field := s.key(user)
		j := &eraseJob{script: s.scripts.Erase, key: key, field: field, skew: s.config.ClockSkew}
		c := &call{job: j, partition: partition}
		j.encode(c)
		r := s.newRun(j, true)
		c.durable = r.durable
		r.add(c)
		s.do(ctx, r)
		if j.reply == "T" {
			r.faults.undecided(fault.WrongType, 1, errWrongType)
		}
		return r, nil
	})
}

// Log is the user's log.
func (s *Store) Log(ctx context.Context, user capping.UserID) (capping.Log, error) {
	var log capping.Log
	err := s.settled(func() (*run, error) {
		partition, key, field := s.key(user)
		c, j := s.command(partition, "hget", key, field)
		r := s.newRun(j, false)
		r.add(c)
		s.do(ctx, r)
		log = capping.Log(j.reply)
		if len(log)%capping.EntrySize != 0 {
			r.faults.undecided(fault.Corrupt, 1, errCorrupt)
			log = nil
		}
		return r, nil
	})
	return log, err
}
