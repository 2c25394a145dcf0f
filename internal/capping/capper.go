package capping

import (
	"context"
	"sync/atomic"
	"time"
)

// Segments is one generation of segments. It is immutable.
type Segments interface {
	Generation() string
	// Names lists the segments in order of precedence, at most 255.
	Names() []string
	// Lookup sets codes[i] to the segment of users[i]: 0 for none, else the
	// index into Names plus 1.
	Lookup(users []UserID, codes []uint8)
}

// Capper decides batches: it joins segments, policy and store. It is safe for
// concurrent use.
type Capper struct {
	store    Store
	widen    time.Duration // of rolling windows, for the store's clocks
	segments func() Segments
	policy   atomic.Pointer[Policy]
	clock    func() time.Time
}

// New is a capper over the store. segments answers the generation in use,
// never nil; clock is the one that the store stamps sends with.
func New(store Store, segments func() Segments, policy *Policy, clock func() time.Time) *Capper {
	c := &Capper{store: store, widen: Widening(store), segments: segments, clock: clock}
	c.policy.Store(policy)
	return c
}

// Policy is the policy in force.
func (c *Capper) Policy() *Policy { return c.policy.Load() }

// SetPolicy puts a policy in force. Calls under way finish with the one they
// began with; logs stay as they are.
func (c *Capper) SetPolicy(p *Policy) { c.policy.Store(p) }

// Segments is the generation in use.
func (c *Capper) Segments() Segments { return c.segments() }

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
}

// Decisions is what was decided of a Send. All of it comes from one
// generation and one policy.
type Decisions struct {
	Users      []UserID  // those of the Send
	Verdicts   []Verdict // by user
	Codes      []uint8   // segment by user: 0 none, else index into Names plus 1
	Names      []string  // the generation's segments
	Generation string
	Policy     *Policy
	// Err says why users are unavailable, for operators; nil when none is.
	Err error

	rulesets []ruleset
}

// Filter decides a send. What the deadline of ctx leaves open is Unavailable.
func (c *Capper) Filter(ctx context.Context, send *Send) *Decisions {
	segments, policy := c.segments(), c.policy.Load()
	d := &Decisions{
		Users: send.Users, Names: segments.Names(), Generation: segments.Generation(), Policy: policy,
		Verdicts: make([]Verdict, len(send.Users)), Codes: make([]uint8, len(send.Users)),
	}
	segments.Lookup(send.Users, d.Codes)
	now := send.At
	if now == 0 {
		now = InstantOf(c.clock())
	}
	d.rulesets = policy.rulesets(d.Names, send.Channel, now, c.widen)
	d.Err = c.store.Filter(ctx, &Batch{
		Message: send.Message, Token: send.Message.Token(), Channel: send.Channel,
		Users: send.Users, Groups: d.Codes, Rules: d.rules(send.Enforce),
		Record: send.Record, At: send.At, Retention: policy.Retention(c.widen),
	}, d.Verdicts)
	return d
}

func (d *Decisions) rules(enforce bool) [][]Rule {
	rules := make([][]Rule, len(d.rulesets))
	if !enforce {
		return rules
	}
	for i := range rules {
		rules[i] = d.rulesets[i].rules
	}
	return rules
}

// Segment is the segment of user i; "" for none.
func (d *Decisions) Segment(i int) string {
	if code := d.Codes[i]; code > 0 {
		return d.Names[code-1]
	}
	return ""
}

// Limit is the limit that denied user i.
func (d *Decisions) Limit(i int) *Limit {
	return d.rulesets[d.Codes[i]].limits[d.Verdicts[i].Rule]
}

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
	Standings  []Standing
	Log        Log // entries that can still matter, oldest first
	Messages   map[Token]Message
	Policy     *Policy
}

// Explain reads one user's log and applies every limit of the user's segment,
// those of single channels too. It writes nothing.
func (c *Capper) Explain(ctx context.Context, user UserID) (*Explanation, error) {
	segments, policy := c.segments(), c.policy.Load()
	log, err := c.store.Log(ctx, user)
	if err != nil {
		return nil, err
	}
	now := InstantOf(c.clock())
	log = log.Live(now - Instant(policy.Retention(c.widen).Milliseconds()))
	var code [1]uint8
	segments.Lookup([]UserID{user}, code[:])
	e := &Explanation{Generation: segments.Generation(), Log: log, Policy: policy}
	if code[0] > 0 {
		e.Segment = segments.Names()[code[0]-1]
	}
	limits := policy.Limits(e.Segment)
	for i := range limits {
		rule := limits[i].Rule(now, c.widen)
		e.Standings = append(e.Standings, Standing{&limits[i], rule.Count(log, now), rule.FreesAt(log, now)})
	}
	e.Messages, err = c.store.Messages(ctx, log.tokens())
	return e, err
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
