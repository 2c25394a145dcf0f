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
	"capper/internal/share"
)

// Capper decides which users may receive a message, from the users' segments, the policy and the logs in the store. A
// Capper is safe for concurrent use.
type Capper struct {
	store    Store
	widen    time.Duration // added to rolling windows, because the clocks that stamp sends may differ
	segments func() Segments
	policy   atomic.Pointer[inForce]
	clock    func() time.Time
}

// New returns a Capper that uses the store. The function in the argument "segments" must return the generation
// (published version) of segments that is in use, and must never return nil. The function in the argument "clock" must
// read the clock with which the store stamps sends.
func New(store Store, segments func() Segments, policy *Policy, clock func() time.Time) *Capper {
	c := &Capper{store: store, widen: Widening(store), segments: segments, clock: clock}
	c.SetPolicy(policy)
	return c
}

// Policy returns the policy in force.
func (c *Capper) Policy() *Policy { return c.policy.Load().Policy }

// SetPolicy replaces the policy in force. Calls in progress finish with the policy with which they began. SetPolicy
// does not change any user's log.
func (c *Capper) SetPolicy(p *Policy) { c.policy.Store(newInForce(p)) }

// Segments returns the generation (published version) of segments in use.
func (c *Capper) Segments() Segments { return c.segments() }

// Basis holds the generation (published version) of segments and the policy that were in force at one instant. To
// decide all sends of one response by the same policy and segments, a caller uses one Basis for all of them.
type Basis struct {
	segments Segments
	policy   *inForce
}

// Basis returns the generation (published version) of segments and the policy that are in force now.
func (c *Capper) Basis() *Basis { return &Basis{c.segments(), c.policy.Load()} }

// Generation returns the name of the generation (published version) of segments.
func (b *Basis) Generation() string { return b.segments.Generation() }

// Policy returns the policy of the Basis.
func (b *Basis) Policy() *Policy { return b.policy.Policy }

// The method Widening returns the duration that the Capper adds to every rolling window of the policy.
func (c *Capper) Widening() time.Duration { return c.widen }

// Store returns the Capper's store.
func (c *Capper) Store() Store { return c.store }

// Send is a filter call: a request to decide, for each user, whether one message may be sent.
type Send struct {
	Message Message
	Channel Channel  // 0: the send has no channel
	Users   []UserID // distinct users
	Enforce bool     // true applies the limits; false denies nobody because of a limit and still counts the sends
	Record  bool     // true counts the sends; false only decides
	At      Instant  // the instant of the decision when Record is false; 0: now
	Basis   *Basis   // the generation and policy to decide with; nil: those in force when the call begins
}

// The method Merge imports into the store the sends that another system recorded. The method Merge leaves out sends
// that are older than the retention of the policy. Merge returns ErrNoMerger if the store cannot import sends.
func (c *Capper) Merge(ctx context.Context, m *Merge) ([]Merged, error) {
	merger, ok := As[Merger](c.store)
	if !ok {
		return nil, ErrNoMerger
	}
	m.Retention = c.Retention()
	merged := make([]Merged, len(m.Users))
	return merged, merger.Merge(ctx, m, merged)
}

// ErrNoMerger is the error of a store that cannot import the sends of another system.
var ErrNoMerger = errors.New("this store cannot import sends from other systems")

// Retention returns the largest age of log entries that the policy in force needs, including the extra time for
// differing clocks.
func (c *Capper) Retention() time.Duration { return c.policy.Load().retention + c.widen }

// Standing is the state of one limit for one user: the number of counted sends, and the time at which the limit has a
// free slot.
type Standing struct {
	Limit   *Limit
	Used    int     // the number of sends that count for the limit now
	FreesAt Instant // when the limit has a free slot; 0: a slot is free now; Never: Max is 0
}

// Explanation lists all reasons why sends to one user are allowed or denied.
type Explanation struct {
	Segment    string // "" for a user in no segment
	Generation string
	// Missing lists sets that the policy needs, but the generation (published version) of segments lacks. An
	// Explanation assumes that the user is not in a missing set. Sends that need a missing set are Unavailable.
	Missing []string
	// TooOld lists the suppressed sets whose list of users is too old or too incomplete to decide sends (see
	// Policy.TooOld). Sends that need one of the sets in TooOld are Unavailable.
	TooOld    []string
	Standings []Standing
	// Zone is the user's time zone, or the policy's time zone for a user in no time zone set.
	Zone *time.Location
	// Suppressed lists the policy's suppressions whose set contains the user.
	Suppressed []*Suppression
	HeldOut    bool // the user is in the policy's holdout
	Quiet      []QuietStanding
	NeverOpen  []Channel // channels whose quiet hours leave the user no open minute within a year, ascending
	Log        Log       // the log entries that can still count for a limit, oldest first
	Messages   map[Token]Message
	Policy     *Policy
}

// A QuietStanding is the state of one entry of the policy's quiet hours for one user: on or off.
type QuietStanding struct {
	Quiet    *Quiet
	Location *time.Location // the time zone of the quiet hours
	On       bool           // the quiet hours are on now
	Until    Instant        // when On is true: the end of these quiet hours, even if other quiet hours follow
}

// The method Explain reads one user's log and applies every limit of the user's segment, including limits of single
// channels. The method Explain also checks which suppressions and quiet hours withhold sends to the user. Explain also
// checks whether the user is in the holdout (share of users who get no messages). The method Explain writes nothing to
// the store.
func (c *Capper) Explain(ctx context.Context, user UserID) (*Explanation, error) {
	basis := c.Basis()
	segments, policy := basis.segments, basis.policy
	if live, ok := segments.(Live); ok {
		renewed, err := live.Renew(ctx, []UserID{user})
		if err != nil {
			return nil, err
		}
		segments = renewed
	}
	log, err := c.store.Log(ctx, user)
	if err != nil {
		return nil, err
	}
	now := InstantOf(c.clock())
	log = log.Live(now - Instant((policy.retention + c.widen).Milliseconds()))
	e := &Explanation{Generation: segments.Generation(), Missing: policy.Missing(segments),
		TooOld: policy.TooOld(segments, c.clock()), Log: log, Policy: policy.Policy}
	var code [1]uint8
	numbers := numbersOf(segments, []UserID{user})
	segments.Lookup(numbers, code[:])
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

// The method "withhold" adds reasons to an Explanation: the suppressions, the holdout and the quiet hours that withhold
// sends to the user on any channel.
func (e *Explanation) withhold(segments Segments, user UserID, now Instant) {
	policy := e.Policy
	for i := range policy.Suppress {
		if inSet(segments, policy.Suppress[i].Set, user) {
			e.Suppressed = append(e.Suppressed, &policy.Suppress[i])
		}
	}
	e.HeldOut = policy.Holdout != nil && share.Has(&policy.Holdout.Share, user)
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

// neverOpen reports whether the quiet hours for a channel together forbid sends to the user at every minute.
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
	set.Mark([]UserID{user}, numbersOf(segments, []UserID{user}), marks[:], 1)
	return marks[0] != 0
}

func zoneOf(segments Segments, policy *Policy, user UserID) *time.Location {
	var zone [1]uint16
	segments.LookupZones(numbersOf(segments, []UserID{user}), zone[:])
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

// The method Release removes recorded sends of a message to the given users, so that limits no longer count these
// sends. Callers release sends that did not take place. The method Release removes only sends on the given channel;
// channel 0 means every channel, and also sends without a channel.
func (c *Capper) Release(ctx context.Context, message Message, channel Channel, users []UserID) ([]Released, error) {
	released := make([]Released, len(users))
	err := c.store.Release(ctx, message.Token(), channel, users, released)
	return released, err
}

// The method Erase removes the user's log from the store.
func (c *Capper) Erase(ctx context.Context, user UserID) error { return c.store.Erase(ctx, user) }
