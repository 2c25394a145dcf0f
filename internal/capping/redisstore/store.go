package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/script"
	"capper/internal/capping/redisstore/topology"
	"capper/internal/messages"
	"capper/internal/pacing"
)

// Store keeps users' logs in Redis. A Store is safe for concurrent use.
type Store struct {
	config   Config
	keyspace script.Keyspace
	prefixes []string // key prefixes, by partition
	scripts  script.Scripts
	top      *topology.Topology
	dispatch *dispatch.Dispatcher
	metrics  *metrics
	memory   *capping.MessageMemory
	warnings []string // warnings of the start; the topology has the current warnings
	marker   script.Marker
	pacers   *pacers
	counts   *messageCounts
	live     *liveLogs
	fleet    *fleet
	trouble  trouble
}

var (
	_ capping.Store  = (*Store)(nil)
	_ pacing.Store   = (*Store)(nil)
	_ messages.Store = (*Store)(nil)
	_ capping.Merger = (*Store)(nil)

	_ pacing.RecordStore  = (*Store)(nil)
	_ capping.RateLimiter = (*Store)(nil)
	_ capping.Accepter    = (*Store)(nil)
)

// The function Open connects to Redis, checks the servers and returns a Store. The function Open rejects servers whose
// settings would break a promise of the store. For a setting that only costs memory or could not be checked, Open logs
// a warning, and Health shows the warning.
func Open(ctx context.Context, config Config) (*Store, error) {
	k, formats := config.IDs.layout()
	return open(ctx, config, k, formats)
}

func open(ctx context.Context, config Config, l script.Keyspace, formats script.Formats) (*Store, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{config: config, memory: capping.NewMessageMemory(config.Clock)}
	if s.metrics, err = newMetrics(config.Registerer); err != nil {
		return nil, err
	}
	s.place(l, formats)
	s.fleet = newFleet(s, func() { s.metrics.showFleet(s) })
	s.fleet.beginRestoration = func(ctx context.Context, partitions []int) map[int]error {
		return s.live.begin(ctx, partitions)
	}
	s.fleet.useDepth = func(depth int) script.Marker {
		s.arrange(script.Spread(depth))
		s.marker = script.NewMarker(s.keyspace, s.config.IDs.marked(), s.config.Namespace, formats)
		return s.marker
	}
	ctx, cancel := context.WithTimeout(ctx, config.Timeout)
	defer cancel()
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// The method "place" sets the Redis keys, the Lua scripts and the topology (the connections to the servers) of the
// store.
func (s *Store) place(l script.Keyspace, formats script.Formats) {
	s.prefixes = l.Prefixes(s.config.Namespace)
	s.marker = script.NewMarker(l, s.config.IDs.marked(), s.config.Namespace, formats)
	var partitions []topology.Partition
	for p, prefix := range append(slices.Clone(s.prefixes), s.marker.Key+":") {
		partitions = append(partitions, topology.Partition{Slot: l.Slot(p), Prefix: prefix})
	}
	about := s.config.topology(partitions, l.HashFields(), script.Sources(l))
	about.LedgerCopies, about.UserPartitions = ledgerCopies(l), l.Partitions
	s.top = topology.New(about)
	s.arrange(l)
}

// The method "arrange" sets the fields of the store that depend on the keyspace (distribution of users over Redis
// keys).
func (s *Store) arrange(l script.Keyspace) {
	s.keyspace, s.scripts = l, script.NewScripts(l)
	s.dispatch = dispatch.New(dispatch.Config{
		Topology: s.top, Keyspace: l, Replicated: !s.config.ReplicaAcks.None(), WaitForAcks: s.config.waitForAcks(),
		ClockSkew: s.config.ClockSkew, Timeout: s.config.Timeout, Clock: s.config.Clock, Logger: s.config.Logger,
	})
	s.counts = newMessages(messagesConfig{
		Dispatcher: s.dispatch, Scripts: s.scripts, Memory: s.memory, Prefixes: s.prefixes,
		Partition: s.messagePartition, TextKey: s.messageKey,
		Retention: s.Retention, Perform: s.perform, Clock: s.config.Clock, ClockSkew: s.config.ClockSkew,
	})
	s.live = newLiveLogs(liveConfig{
		Dispatcher: s.dispatch, Topology: s.top, Scripts: s.scripts, Prefixes: s.prefixes, Partition: l.Partition,
		Images: l.IsSpread(),
		Clock:  s.config.Clock, ClockSkew: s.config.ClockSkew, Logger: s.config.Logger, Timeout: s.config.Timeout,
		Perform: s.perform, Quietly: s.quietly, Instances: func() instances { return s.fleet.instances() },
	})
	s.pacers = newPacers(pacersConfig{
		Dispatcher: s.dispatch, Scripts: s.scripts, Partition: l.PacerPartition, Prefixes: s.prefixes,
		ClockSkew: s.config.ClockSkew, Perform: s.perform,
	})
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
	s.metrics.showShards(s)
	if err := s.fleet.start(ctx); err != nil {
		return s.top.Explain(ctx, err)
	}
	s.live.start(ctx)
	s.fleet.run()
	s.live.run()
	return nil
}

// ClockTolerance returns Config.ClockSkew.
func (s *Store) ClockTolerance() time.Duration { return s.config.ClockSkew }

// The method Close closes the connections to Redis and stops every goroutine of the store.
func (s *Store) Close() error {
	s.fleet.close()
	s.live.close()
	err := s.top.Close()
	s.pacers.Wait()
	s.dispatch.Wait()
	return err
}

// If this store is not halted, the method "perform" calls the function "work". A halted store must not decide about
// users. The function "work" returns a run (the sending of commands), and perform returns the faults of this run as one
// error. The method "perform" also counts the faults in the metrics, and notes the faults for Health.
func (s *Store) perform(work func() *dispatch.Run) error {
	if err := s.halted(); err != nil {
		return err
	}
	r := work()
	s.metrics.countFaults(&r.Faults)
	err := r.Faults.Err()
	s.trouble.note(&r.Faults, err)
	s.dispatch.Recycle(r)
	return err
}

// The method "quietly" works like the method "perform", but does not change the metrics or Health. The store uses
// "quietly" for its own background work.
func (s *Store) quietly(work func() *dispatch.Run) error {
	if err := s.halted(); err != nil {
		return err
	}
	r := work()
	err := r.Faults.Err()
	s.dispatch.Recycle(r)
	return err
}

// TakePermits takes permits from pacers; see pacing.Store. The clock of the Redis server sets the time of each permit.
func (s *Store) TakePermits(ctx context.Context, ask *pacing.Ask) (pacing.Grant, error) {
	return s.pacers.Take(ctx, ask)
}

// ReturnPermits returns the unused permits of a request to its pacers; see pacing.Store.
func (s *Store) ReturnPermits(ctx context.Context, ask *pacing.Ask, used int) (pacing.Returned, error) {
	return s.pacers.Return(ctx, ask, used)
}

// ForgetPacer resets a pacer in a group: the store removes all grants of the pacer; see pacing.Store.
func (s *Store) ForgetPacer(ctx context.Context, pacer, group string) error {
	return s.pacers.Forget(ctx, pacer, group)
}

// AddAnswers adds numbers of decisions to the stored counts of messages; see messages.Store.
func (s *Store) AddAnswers(ctx context.Context, deltas []messages.Delta) error {
	return s.counts.AddAnswers(ctx, deltas)
}

// ListMessages returns a page of the messages that the query selects; see messages.Store.
func (s *Store) ListMessages(ctx context.Context, q messages.Query) (messages.Page, error) {
	return s.counts.ListMessages(ctx, q)
}

// MessageCounts returns the counts of the message on each channel; see messages.Store.
func (s *Store) MessageCounts(ctx context.Context, message capping.Message) ([]messages.Counts, error) {
	return s.counts.MessageCounts(ctx, message)
}

// SetTitle replaces the title of the message; see messages.Store.
func (s *Store) SetTitle(ctx context.Context, message capping.Message, title string) error {
	return s.counts.SetTitle(ctx, message, title)
}

// Title returns the title that was set for the message; see messages.Store.
func (s *Store) Title(ctx context.Context, message capping.Message) (string, error) {
	return s.counts.Title(ctx, message)
}

// The method "halted" returns the reason why this store makes no decisions at present, or nil if the store makes
// decisions.
func (s *Store) halted() error { return s.fleet.halted() }

// The method Announce tells the other instances the policy that this instance is about to use. The caller of Announce
// must call Announce before the first filter call under a new policy. After Announce, the store keeps every send as
// long as a limit of the policy can count the send. If the policy and the stored numbers of channels contradict each
// other, Announce returns an error. If Redis does not answer, the next heartbeat reports the policy to the other
// instances.
func (s *Store) Announce(ctx context.Context, p *capping.Policy) error {
	return s.fleet.announce(ctx, p)
}

// The method Made reports whether Open created a new store without any records.
func (s *Store) Made() bool { return s.fleet.made }

// Locate returns the partition of the user's log and the node that serves the partition.
func (s *Store) Locate(user capping.UserID) capping.Location {
	at := capping.Location{Partition: s.keyspace.Partition(user)}
	if node := s.top.Route(at.Partition); node != nil {
		at.Node = node.Addr()
	}
	return at
}

// Retention returns the time for which the store keeps sends: the longest retention in force that this instance knows.
func (s *Store) Retention() time.Duration { return s.fleet.retention() }

// The method Take subtracts a number of users from the client's rate budget; see capping.RateLimiter. All instances
// with this store share the budget. The method Take runs the generic cell rate algorithm (GCRA) with the clock of the
// Redis node. The method Take makes only one attempt: if the node with the client's budget does not answer, Take
// returns an error.
func (s *Store) Take(ctx context.Context, client string, rate capping.Rate, users int) (capping.RateState, error) {
	partition := s.keyspace.PartitionOf(client)
	n := s.top.Route(partition)
	if n == nil {
		return capping.RateState{}, fault.ErrNoRoute
	}
	reply, err := s.scripts.Rate.Run(ctx, n.Client(), []string{s.rateKey(partition, client)},
		script.RateArgs(rate, users)...).Int64Slice()
	var state capping.RateState
	if err == nil {
		state, err = script.DecodeRate(reply)
	}
	if err != nil {
		s.top.RefreshSoon()
		return capping.RateState{}, fmt.Errorf("node %s: %w", n.Addr(), err)
	}
	return state, nil
}

// rateKey returns the key of a client's rate budget. The second colon in the key of a rate budget prevents a collision
// with the key of a bucket of users.
func (s *Store) rateKey(partition int, client string) string {
	return s.prefixes[partition] + "rate:" + client
}
