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

// Config holds the settings of a count. Policy, Policies and Until are required.
type Config struct {
	Until capping.Instant // end of the latest week
	Weeks int             // 1 to MaxWeeks; 0: DefaultWeeks
	// Channel and Namespace select the messages that are counted. Channel is a pointer, because channel 0 is none.
	Channel   *capping.Channel
	Namespace *string
	// Policy has the limits in force. Policies returns the policy of a configuration version; it is called once for
	// each version.
	Policy   *capping.Policy
	Policies func(version string) (*capping.Policy, error)
	// Widen is the time by which rolling windows of Policy are longer than configured.
	Widen time.Duration
	// Segments is the generation in use, and Sizes the number of users by segment. Nil: everybody is in no segment.
	Segments Segments
	Sizes    map[string]int64
	// AtLimit selects users to list; nil: none.
	AtLimit *AtLimit
	// Most is the largest number of campaigns, of campaigns in HeldBack and of their takers. 0: DefaultMost.
	Most int
	// MinTaken is the smallest number of sends of a campaign that is looked at as a taker. 0: DefaultMinTaken.
	MinTaken int
	// MemoryBytes bounds the memory for the numbers of users. 0: DefaultMemory.
	MemoryBytes int64
}

// Segments is a generation of the segments; see capping.Segments for the methods. A *segments.Snapshot is one.
type Segments interface {
	Generation() string
	Names() []string
	Numbers(users []capping.UserID, numbers []uint32)
	Lookup(numbers []uint32, codes []uint8)
	Zones() []*time.Location
	LookupZones(numbers []uint32, zones []uint16)
}

var _ Segments = (*segments.Snapshot)(nil)

// In sets the generation in use.
func (c *Config) In(s *segments.Snapshot) {
	c.Segments, c.Sizes = s, map[string]int64{}
	for _, size := range s.Segments() {
		c.Sizes[size.Name] = int64(size.Cardinality)
	}
}

// AtLimit selects the users of a segment who are at a limit.
type AtLimit struct {
	Segment string // "": users in no segment
	Limit   string // "": any limit
}

// These are the bounds of Config and the values of its zero fields.
const (
	Week             = 7 * 24 * time.Hour
	MaxWeeks         = 27
	DefaultWeeks     = 5
	DefaultMost      = 20
	DefaultMinTaken  = 100
	DefaultMemory    = 1 << 30
	mostTakers       = 200
	mostCampaigns    = 100_000
	mostRows         = 64 // channels and namespaces that are counted apart
	others           = "(others)"
	cancelledEvery   = 64 // pages between two looks at the context
	slackOfRetention = time.Hour
)

// Result is a count and the list of users that Config.AtLimit requests.
type Result struct {
	*api.Pressure
	// Users holds the users who are at the limit. Images holds them where ids are not dense; then Users is nil.
	Users  *bitmap.Bitmap
	Images []capping.UserID
}

// Read returns the records from an instant on, in the order of time. A pass over the records calls it once.
type Read func(from capping.Instant) iter.Seq2[*audit.Record, error]

// Run counts the records. Run runs in the caller's goroutine and ends with the context.
func Run(ctx context.Context, read Read, cfg Config) (*Result, error) {
	if cfg.Policy == nil || cfg.Policies == nil || cfg.Until <= 0 {
		return nil, errors.New("pressure: Config.Policy, Config.Policies and Config.Until must be set")
	}
	if cfg.Weeks < 0 || cfg.Weeks > MaxWeeks {
		return nil, fmt.Errorf("pressure: weeks must be 1 to %d, got %d", MaxWeeks, cfg.Weeks)
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

// start returns the first instant of the earliest week.
func (c *Config) start() capping.Instant {
	return c.Until - capping.Instant(c.Weeks)*capping.Instant(Week.Milliseconds())
}

// week returns the week of an instant: 0 for the latest one, and -1 outside all weeks.
func (c *Config) week(at capping.Instant) int {
	if at >= c.Until || at < c.start() {
		return -1
	}
	return int((c.Until - 1 - at) / capping.Instant(Week.Milliseconds()))
}

// engine is one pass over the records.
type engine struct {
	*Config
	out      *output
	begin    capping.Instant // records before it are not needed
	first    bool            // the pass that counts all that does not belong to single users
	people   *people
	numbers  *numbering.Numbers // nil: the ids are dense
	policies map[string]*capping.Policy
	messages map[capping.Message][]*message
	takers   takers
	keep     time.Duration // the longest time for which a log keeps a send
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

// take counts the next record.
func (e *engine) take(r *audit.Record) error {
	if r.At < e.last {
		return fmt.Errorf("audit record %d of instance %s must not be earlier than the record before it", r.Sequence,
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

// notice counts the record.
func (e *engine) notice(r *audit.Record) {
	if e.out.records == 0 {
		e.out.begins = r.At
	}
	e.out.records++
	e.out.sequences.Add(r.Instance, r.Sequence)
}

// know reads the policy of a configuration version.
func (e *engine) know(version string) error {
	if e.policies[version] != nil {
		return nil
	}
	policy, err := e.Policies(version)
	if err != nil {
		return fmt.Errorf("read the limits of configuration %s: %w", version, err)
	}
	e.policies[version] = policy
	e.keep = max(e.keep, policy.Retention(e.Widen)+slackOfRetention)
	return nil
}

// counts reports whether the sends of the message on the channel are selected.
func (e *engine) counts(m capping.Message, channel capping.Channel) bool {
	return (e.Channel == nil || *e.Channel == channel) && (e.Namespace == nil || *e.Namespace == m.Namespace)
}

// end adds the numbers of the users of the pass.
func (e *engine) end(ctx context.Context) error {
	if e.first {
		e.out.policies(e.policies)
	}
	return e.people.end(ctx)
}
