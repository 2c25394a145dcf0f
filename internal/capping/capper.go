package capping

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"capper/internal/quiet"
)

// Capper decides batches: it joins segments, policy and store. It is safe for
// concurrent use.
type Capper struct {
	store    Store
	widen    time.Duration // of rolling windows, for the store's clocks
	segments func() Segments
	policy   atomic.Pointer[inForce]
	clock    func() time.Time
}

// New is a capper over the store. segments answers the generation in use,
// never nil; clock is the one that the store stamps sends with.
func New(store Store, segments func() Segments, policy *Policy, clock func() time.Time) *Capper {
	c := &Capper{store: store, widen: Widening(store), segments: segments, clock: clock}
	c.SetPolicy(policy)
	return c
}

// Policy is the policy in force.
func (c *Capper) Policy() *Policy { return c.policy.Load().Policy }

// SetPolicy puts a policy in force. Calls under way finish with the one they
// began with; logs stay as they are.
func (c *Capper) SetPolicy(p *Policy) { c.policy.Store(newInForce(p)) }

// Segments is the generation in use.
func (c *Capper) Segments() Segments { return c.segments() }

// Basis is a generation and a policy, as they were in force at one instant. Whoever decides
// several sends for one answer decides all of them on one basis.
type Basis struct {
	segments Segments
	policy   *inForce
}

// Basis is the generation in use and the policy in force now.
func (c *Capper) Basis() *Basis { return &Basis{c.segments(), c.policy.Load()} }

// Generation is the name of the generation.
func (b *Basis) Generation() string { return b.segments.Generation() }

// Policy is the policy.
func (b *Basis) Policy() *Policy { return b.policy.Policy }

// Widening is how much longer rolling windows are than the policy's limits say.
func (c *Capper) Widening() time.Duration { return c.widen }

// Store is the store behind the capper.
func (c *Capper) Store() Store { return c.store }

// Send is a filter call: may this message go to these users?
type Send struct {
	Message Message
	Channel Channel  // 0: none
	Users   []UserID // distinct
	Enforce bool     // apply the limits; false: deny nobody, count the sends all the same
	Record  bool     // count the sends; false: decide only
	At      Instant  // without Record: decide as of this instant; 0: now
	Basis   *Basis   // that decides; nil: the one in force when the call begins
}

// Merge has the store merge sends that were recorded elsewhere, for as long as the policy looks back. A
// store that cannot is an error, ErrNoMerger.
func (c *Capper) Merge(ctx context.Context, m *Merge) ([]Merged, error) {
	merger, ok := As[Merger](c.store)
	if !ok {
		return nil, ErrNoMerger
	}
	m.Retention = c.Retention()
	merged := make([]Merged, len(m.Users))
	return merged, merger.Merge(ctx, m, merged)
}

// ErrNoMerger is that a store cannot merge.
var ErrNoMerger = errors.New("this store cannot import sends of other systems")

// Retention is for how long the policy in force looks back.
func (c *Capper) Retention() time.Duration { return c.policy.Load().retention + c.widen }

// Standing is how a user stands with one limit.
type Standing struct {
	Limit   *Limit
	Used    int     // sends that count now
	FreesAt Instant // 0: a slot is free; Never: Max is 0
}

// Explanation is why a user is allowed or denied.
type Explanation struct {
	Segment    string // "" for none
	Generation string
	// Missing are the sets that the policy needs and the generation lacks: what goes by them is
	// told as if the user were in none of them, and sends that need one are Unavailable.
	Missing []string
	// TooOld are suppressed sets that are older than the policy lets them be: sends that need
	// one are Unavailable.
	TooOld    []string
	Standings []Standing
	// Zone is the user's time zone, the policy's for a user in no set of one.
	Zone *time.Location
	// Suppressed are the policy's suppressions whose set the user is in.
	Suppressed []*Suppression
	HeldOut    bool // the user is in the policy's holdout
	Quiet      []QuietStanding
	NeverOpen  []Channel // those of which quiet hours leave the user no minute within a year, in order
	Log        Log       // entries that can still matter, oldest first
	Messages   map[Token]Message
	Policy     *Policy
}

// QuietStanding is how a user stands with quiet hours that apply to them.
type QuietStanding struct {
	Quiet    *Quiet
	Location *time.Location // by whose clocks
	On       bool           // they are on now
	Until    Instant        // On: when these hours end, whatever other hours say
}

// Explain reads one user's log and applies every limit of the user's segment,
// those of single channels too, and all that withholds sends. It writes nothing.
func (c *Capper) Explain(ctx context.Context, user UserID) (*Explanation, error) {
	basis := c.Basis()
	segments, policy := basis.segments, basis.policy
	log, err := c.store.Log(ctx, user)
	if err != nil {
		return nil, err
	}
	now := InstantOf(c.clock())
	log = log.Live(now - Instant((policy.retention + c.widen).Milliseconds()))
	e := &Explanation{Generation: segments.Generation(), Missing: policy.Missing(segments),
		TooOld: policy.TooOld(segments, c.clock()), Log: log, Policy: policy.Policy}
	var code [1]uint8
	segments.Lookup([]UserID{user}, code[:])
	if code[0] > 0 {
		e.Segment = segments.Names()[code[0]-1]
	}
	e.Zone = zoneOf(segments, policy.Policy, user)
	limits := policy.Limits(e.Segment)
	for i := range limits {
		rule := limits[i].RuleIn(now, c.widen, e.Zone)
		e.Standings = append(e.Standings, Standing{&limits[i], rule.Count(log, now), rule.FreesAt(log, now)})
	}
	e.withhold(segments, user, now)
	e.Messages, err = c.store.Messages(ctx, log.tokens())
	return e, err
}

// withhold finds what withholds sends from the user, on whatever channel.
func (e *Explanation) withhold(segments Segments, user UserID, now Instant) {
	policy := e.Policy
	for i := range policy.Suppress {
		if inSet(segments, policy.Suppress[i].Set, user) {
			e.Suppressed = append(e.Suppressed, &policy.Suppress[i])
		}
	}
	e.HeldOut = policy.Holdout != nil && policy.Holdout.Share.Has(user)
	for i := range policy.Quiet {
		q := &policy.Quiet[i]
		if len(q.Sets) > 0 && !slices.ContainsFunc(q.Sets,
			func(name string) bool { return inSet(segments, name, user) }) {
			continue
		}
		standing := QuietStanding{Quiet: q, Location: q.in(e.Zone)}
		standing.On, _, standing.Until = quietAt([]quiet.Clock{{Hours: q.Hours, Location: standing.Location}}, now)
		e.Quiet = append(e.Quiet, standing)
	}
	for _, channel := range slices.Sorted(maps.Values(policy.Channels)) {
		if e.neverOpen(channel, now) {
			e.NeverOpen = append(e.NeverOpen, channel)
		}
	}
}

// neverOpen reports whether the quiet hours of a channel, all together, leave no minute.
func (e *Explanation) neverOpen(channel Channel, now Instant) bool {
	var clocks []quiet.Clock
	for _, s := range e.Quiet {
		if s.Quiet.Channels.Has(channel) {
			clocks = append(clocks, quiet.Clock{Hours: s.Quiet.Hours, Location: s.Location})
		}
	}
	on, _, until := quietAt(clocks, now)
	return on && until == Never
}

func inSet(segments Segments, name string, user UserID) bool {
	set, ok := segments.Set(name)
	if !ok {
		return false
	}
	var marks [1]uint8
	set.Mark([]UserID{user}, marks[:], 1)
	return marks[0] != 0
}

func zoneOf(segments Segments, policy *Policy, user UserID) *time.Location {
	var zone [1]uint16
	segments.LookupZones([]UserID{user}, zone[:])
	if zone[0] > 0 {
		return segments.Zones()[zone[0]-1]
	}
	return cmp.Or(policy.Zone, time.UTC)
}

func (l Log) tokens() []Token {
	seen := make(map[Token]bool, l.Len())
	var tokens []Token
	for _, e := range l.Entries() {
		if !seen[e.Token] {
			seen[e.Token] = true
			tokens = append(tokens, e.Token)
		}
	}
	return tokens
}

// Release gives back the slots of a message's sends that did not go out: those
// on the channel; 0: on every channel and on none.
func (c *Capper) Release(ctx context.Context, message Message, channel Channel, users []UserID) ([]Released, error) {
	released := make([]Released, len(users))
	err := c.store.Release(ctx, message.Token(), channel, users, released)
	return released, err
}

// Erase removes the user's log.
func (c *Capper) Erase(ctx context.Context, user UserID) error { return c.store.Erase(ctx, user) }
