package pressure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"capper/client/api"
	"capper/internal/audit"
	"capper/internal/audit/numbering"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/segments"
)

// Config holds the settings for counting messages per person. The fields Policy, Policies and Until are required.
type Config struct {
	Until capping.Instant // end of the latest week
	Weeks int             // 1 to MaxWeeks; 0: DefaultWeeks
	// Channel and Namespace select the counted messages. A nil Channel selects all channels, and a nil Namespace all
	// namespaces. Channel is a pointer, because the number 0 stands for messages without a channel.
	Channel   *capping.Channel
	Namespace *string
	// Policy contains the limits in force. The function Policies returns the policy of a configuration version. Run
	// calls Policies once for each version.
	Policy   *capping.Policy
	Policies func(version string) (*capping.Policy, error)
	// Widen is the duration by which the store extends the rolling windows of Policy.
	Widen time.Duration
	// Segments is the segments generation in use, and Sizes contains the number of users in each segment. If Segments
	// is nil, no user is in a segment.
	Segments Segments
	Sizes    map[string]int64
	// AtLimit selects the users for a list: users who have reached a limit. If AtLimit is nil, Run lists no users.
	AtLimit *AtLimit
	// Most is the maximum length of each list: campaigns, campaigns in HeldBack, and takers (campaigns that caused
	// denials) for each campaign in HeldBack. The value 0 means DefaultMost.
	Most int
	// MinTaken is the minimum number of sends of a taker (campaign that caused denials of other campaigns). The value 0
	// means DefaultMinTaken.
	MinTaken int
	// MemoryBytes limits the memory in bytes for the numbers of messages. The value 0 means DefaultMemory.
	MemoryBytes int64
}

// Segments is the part of capping.Segments that package pressure needs from a segments generation (published version).
// The type *segments.Snapshot implements the interface Segments.
type Segments interface {
	Generation() string
	Names() []string
	Numbers(users []capping.UserID, numbers []uint32)
	Lookup(numbers []uint32, codes []uint8)
	Zones() []*time.Location
	LookupZones(numbers []uint32, zones []uint16)
}

var _ Segments = (*segments.Snapshot)(nil)

// The method In puts a segments generation (published version), and the sizes of the generation's segments, into the
// Config.
func (c *Config) In(s *segments.Snapshot) {
	c.Segments, c.Sizes = s, map[string]int64{}
	for _, size := range s.Segments() {
		c.Sizes[size.Name] = int64(size.Cardinality)
	}
}

// AtLimit selects the users of a segment who have reached a limit.
type AtLimit struct {
	Segment string // "": users in no segment
	Limit   string // "": any limit
}

// These constants are the limits and the default values for the fields of Config.
const (
	Week             = 7 * 24 * time.Hour
	MaxWeeks         = 27
	DefaultWeeks     = 5
	DefaultMost      = 20
	DefaultMinTaken  = 100
	DefaultMemory    = 1 << 30
	mostTakers       = 200
	mostCampaigns    = 100_000
	mostRows         = 64 // channels and namespaces with a row of their own
	others           = "(others)"
	cancelledEvery   = 64 // number of pages between two checks of the context
	slackOfRetention = time.Hour
)

// Result contains the counts of messages per person, and the list of users that Config.AtLimit selects.
type Result struct {
	*api.Pressure
	// Users contains the users who have reached the limit. If ids are not dense 32-bit numbers, Images contains the id
	// images of these users, and Users is nil.
	Users  *bitmap.Bitmap
	Images []capping.UserID
}

// Read is a function that returns the audit records from a given time on, in the order of time. Each pass over the
// audit records calls Read once.
type Read func(from capping.Instant) iter.Seq2[*audit.Record, error]

// Run counts the messages of each person from audit records. Run works in the caller's goroutine only, and returns when
// the context ends.
func Run(ctx context.Context, read Read, cfg Config) (*Result, error) {
	if cfg.Policy == nil || cfg.Policies == nil || cfg.Until <= 0 {
		return nil, errors.New("pressure: the fields Policy, Policies and Until of Config must all be set")
	}
	if cfg.Weeks < 0 || cfg.Weeks > MaxWeeks {
		return nil, fmt.Errorf("pressure: the number of weeks must be 1 to %d, got %d", MaxWeeks, cfg.Weeks)
	}
	cfg.defaults()
	out := newOutput(&cfg)
	for from := 0; from < bitmap.MaxBlocks; {
		e := newEngine(&cfg, out, from)
		for r, err := range read(e.begin) {
			if err == nil {
				err = ctx.Err()
			}
			if err == nil {
				err = e.take(r)
			}
			if err != nil {
				return nil, err
			}
		}
		if err := e.end(ctx); err != nil {
			return nil, err
		}
		from = e.people.until
	}
	return out.result(), nil
}

func (c *Config) defaults() {
	c.Weeks = cmp.Or(c.Weeks, DefaultWeeks)
	c.Most = cmp.Or(c.Most, DefaultMost)
	c.MinTaken = cmp.Or(c.MinTaken, DefaultMinTaken)
	c.MemoryBytes = cmp.Or(c.MemoryBytes, DefaultMemory)
}

// The method start returns the beginning of the earliest week to count.
func (c *Config) start() capping.Instant {
	return c.Until - capping.Instant(c.Weeks)*capping.Instant(Week.Milliseconds())
}

// The method week returns the index of the week that contains a time: 0 for the latest week, -1 outside all counted
// weeks.
func (c *Config) week(at capping.Instant) int {
	if at >= c.Until || at < c.start() {
		return -1
	}
	return int((c.Until - 1 - at) / capping.Instant(Week.Milliseconds()))
}

// An engine is the state of one pass over the audit records. A pass counts some of the users.
type engine struct {
	*Config
	out      *output
	begin    capping.Instant // earlier records are not needed
	first    bool            // first pass, which also counts everything that does not concern single users
	people   *people
	numbers  *numbering.Numbers // nil: dense ids
	policies map[string]*capping.Policy
	messages map[capping.Message][]*message
	takers   takers
	keep     time.Duration // longest time for which a log keeps a send
	swept    capping.Instant
	last     capping.Instant
	spans    map[limitKey]*span
}

func newEngine(cfg *Config, out *output, from int) *engine {
	e := &engine{
		Config: cfg, out: out, first: from == 0, policies: map[string]*capping.Policy{},
		messages: map[capping.Message][]*message{}, keep: cfg.Policy.Retention(cfg.Widen) + slackOfRetention,
		spans: map[limitKey]*span{},
	}
	e.takers.min = cfg.MinTaken
	e.people = newPeople(cfg, out, from)
	e.begin = max(0, cfg.start()-capping.Instant(e.keep.Milliseconds()))
	return e
}

// The method take counts the next audit record.
func (e *engine) take(r *audit.Record) error {
	if r.At < e.last {
		return fmt.Errorf("audit record %d of capper instance %s must not be earlier than the previous record",
			r.Sequence,
			r.Instance)
	}
	if e.last = r.At; r.At >= e.Until {
		return nil
	}
	if e.first {
		e.notice(r)
	}
	if r.Kind != audit.Filter && r.Kind != audit.Release {
		return nil
	}
	if slices.ContainsFunc(r.Groups, func(g audit.Group) bool { return g.Images != nil }) {
		if e.numbers == nil {
			e.numbers = numbering.New()
			e.people.numbers = e.numbers
		}
		var err error
		if r, err = e.numbers.Record(r); err != nil {
			return err
		}
	}
	if err := e.know(r.Config); err != nil {
		return err
	}
	e.sweep(r.At)
	if r.Kind == audit.Release {
		e.release(r)
	} else {
		e.filter(r)
	}
	e.people.bound()
	return nil
}

// The method notice updates the numbers about the audit, such as the number of missing records, with an audit record.
func (e *engine) notice(r *audit.Record) {
	if e.out.records == 0 {
		e.out.begins = r.At
	}
	e.out.records++
	e.out.sequences.Add(r.Instance, r.Sequence)
}

// The method know reads the policy of a configuration version, unless the policy is already in memory.
func (e *engine) know(version string) error {
	if e.policies[version] != nil {
		return nil
	}
	policy, err := e.Policies(version)
	if err != nil {
		return fmt.Errorf("read the limits of configuration version %s: %w", version, err)
	}
	e.policies[version] = policy
	e.keep = max(e.keep, policy.Retention(e.Widen)+slackOfRetention)
	return nil
}

// The method "counts" reports whether the Config selects the message on the channel for counting.
func (e *engine) counts(m capping.Message, channel capping.Channel) bool {
	return (e.Channel == nil || *e.Channel == channel) && (e.Namespace == nil || *e.Namespace == m.Namespace)
}

// The method end adds the results of the pass over the audit records to the output.
func (e *engine) end(ctx context.Context) error {
	if e.first {
		e.out.policies(e.policies)
	}
	return e.people.end(ctx)
}
