package whatif

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"capper/client/api"
	"capper/internal/audit"
	"capper/internal/capping"
)

// Config holds the settings of a replay. Policies and Generations are required.
type Config struct {
	// Policy is the alternative policy. If Policy is nil, the replay decides each call under the policy that was in
	// force at the call.
	Policy *capping.Policy
	// Policies returns the policy of a configuration version. The replay calls Policies once for each version.
	// Generations returns the segments of a generation. The replay keeps the latest few generations in memory, and
	// calls Generations again for others.
	Policies    func(version string) (*capping.Policy, error)
	Generations func(name string) (capping.Segments, error)
	// Generation is the name of the segments generation with which the replay decides all records. If Generation is
	// empty, the replay decides each record with the generation that the record names.
	Generation string
	// Widen is the time by which the store extended rolling windows: twice the store's clock tolerance.
	Widen time.Duration
	// Since and Until bound the calls that the result counts; 0 means no bound. The replay also decides calls before
	// Since again, but does not count them.
	Since, Until capping.Instant
	// MaxDecisions and MaxBytes bound the work and the memory of a replay; 0 means no bound. A replay that exceeds a
	// bound ends with a *BoundError. MaxBytes does not cover the segments.
	MaxDecisions, MaxBytes int64
}

// BoundError reports that a replay was stopped because it exceeded its limit of decisions or memory.
type BoundError struct {
	Decisions, Bytes int64 // decisions and memory of the replay so far
}

func (e *BoundError) Error() string {
	return fmt.Sprintf("what-if: more than %d decisions or %d MiB are too much", e.Decisions, e.Bytes>>20)
}

// Run replays the records, which must be in the order of time, and returns the result under the alternative policy. Run
// works in the caller's goroutine. Run keeps no audit records in memory, except some bitmaps of the records.
func Run(ctx context.Context, records iter.Seq2[*audit.Record, error], cfg Config) (*Result, error) {
	e, err := newEngine(cfg)
	if err != nil {
		return nil, err
	}
	for r, err := range records {
		if err == nil {
			err = cmpErr(ctx.Err(), e.replay(r))
		}
		if err != nil {
			return nil, err
		}
	}
	return e.result(), nil
}

func cmpErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// An engine is the state of a replay of recorded calls.
type engine struct {
	cfg         Config
	histories   *histories
	logs        *logs
	tallies     *tallies
	policies    map[string]*inForce
	generations map[string]capping.Segments
	lastUsed    []string // names of generations, the last one at the end
	alike       map[alikeKey]*likeness
	other       *judging

	longest, shortest time.Duration // retentions of the other policy and of all policies that were read so far
	asked             *firstAsked
	last              capping.Instant
	c                 call // state of the current call; reused for each call
	// The function observe is a hook for tests. observe receives the verdicts for users whom the replay judged again or
	// checked one by one.
	observe func(r *audit.Record, users []capping.UserID, verdicts []capping.Verdict)
}

// The type inForce is a policy that was in force, together with the capping.Capper that decides the same calls under
// the alternative policy.
type inForce struct {
	*capping.Policy
	*judging
}

type alikeKey struct {
	config  string
	channel capping.Channel
	exempt  bool
}

// The type "judging" holds a capping.Capper, and the segments of the call that the Capper decides.
type judging struct {
	capper   *capping.Capper
	segments capping.Segments // segments of the call
}

func newEngine(cfg Config) (*engine, error) {
	if cfg.Policies == nil || cfg.Generations == nil {
		return nil, errors.New("what-if: Config.Policies and Config.Generations must be set")
	}
	h := newHistories()
	e := &engine{
		cfg: cfg, histories: h, logs: &logs{histories: h, widen: cfg.Widen}, tallies: newTallies(),
		policies: map[string]*inForce{}, generations: map[string]capping.Segments{}, alike: map[alikeKey]*likeness{},
		asked: newFirstAsked(),
	}
	if cfg.Policy != nil {
		e.other = e.judge(cfg.Policy)
		e.retain(cfg.Policy)
	}
	return e, nil
}

func (e *engine) judge(policy *capping.Policy) *judging {
	j := &judging{}
	j.capper = capping.New(e.logs, func() capping.Segments { return j.segments }, policy,
		func() time.Time { return e.last.Time() })
	return j
}

// The method replay decides the call of the next audit record again, under the alternative policy.
func (e *engine) replay(r *audit.Record) error {
	if r.At < e.last {
		return fmt.Errorf(
			"audit record %d of capper instance %s has the time %s, but an earlier record has the later time %s",
			r.Sequence, r.Instance,
			r.At.Time(), e.last.Time())
	}
	e.last = r.At
	e.tallies.began(r)
	e.tallies.sequences.Add(r.Instance, r.Sequence)
	if r.Kind != audit.Filter && r.Kind != audit.Release {
		return nil
	}
	r, err := e.histories.numbered(r)
	if err != nil {
		return err
	}
	policy, err := e.policy(r.Config)
	if err != nil {
		return err
	}
	e.histories.horizon = r.At - capping.Instant(e.longest.Milliseconds())
	c := &e.c
	if err := c.begin(e, r, policy); err != nil {
		return err
	}
	if r.Kind == audit.Release {
		c.release()
	} else if err := c.filter(); err != nil {
		return err
	}
	e.tallies.end(c)
	return e.bounded()
}

// The method "bounded" returns an error if the replay has exceeded its limit of decisions or memory.
func (e *engine) bounded() error {
	decisions, bytes := e.tallies.decided, e.histories.bytes+e.histories.numbers.Bytes()
	if e.cfg.MaxDecisions > 0 && decisions > e.cfg.MaxDecisions || e.cfg.MaxBytes > 0 && bytes > e.cfg.MaxBytes {
		return &BoundError{decisions, bytes}
	}
	return nil
}

// The method policy returns the policy of a configuration version.
func (e *engine) policy(version string) (*inForce, error) {
	if p := e.policies[version]; p != nil {
		return p, nil
	}
	policy, err := e.cfg.Policies(version)
	if err != nil {
		return nil, fmt.Errorf("read the limits of configuration version %s: %w", version, err)
	}
	p := &inForce{Policy: policy, judging: e.other}
	if p.judging == nil {
		p.judging = e.judge(policy)
	}
	e.retain(policy)
	e.policies[version] = p
	e.tallies.configs = append(e.tallies.configs, version)
	return p, nil
}

// The method retain extends the time for which the replay keeps users' sends to at least the time for which the policy
// keeps sends.
func (e *engine) retain(policy *capping.Policy) {
	retention := policy.Retention(e.cfg.Widen)
	if e.longest = max(e.longest, retention); e.shortest == 0 || retention < e.shortest {
		e.shortest = retention
	}
}

// The method generation returns the segments generation (published version) with which the replay judges the users of
// an audit record.
func (e *engine) generation(name string) (capping.Segments, error) {
	if e.cfg.Generation != "" {
		name = e.cfg.Generation
	}
	s := e.generations[name]
	if s == nil {
		var err error
		if s, err = e.cfg.Generations(name); err != nil {
			return nil, err
		}
		e.generations[name] = s
	}
	e.use(name)
	return s, nil
}

// keptGenerations is the number of segments generations (published versions) that a replay keeps in memory. A replay
// needs only a few generations at a time, because the instances of a service use one or two generations at the same
// moment.
const keptGenerations = 4

// The method use notes that a segments generation (published version) was used. If too many generations are in memory,
// the method use removes the generation that was not used for the longest time.
func (e *engine) use(name string) {
	if n := len(e.lastUsed); n > 0 && e.lastUsed[n-1] == name {
		return
	}
	e.lastUsed = append(slices.DeleteFunc(e.lastUsed, func(other string) bool { return other == name }), name)
	if len(e.lastUsed) > keptGenerations {
		delete(e.generations, e.lastUsed[0])
		e.lastUsed = e.lastUsed[1:]
	}
}

// likenessOf finds the users of the record for whom both policies have the same rules.
func (e *engine) likenessOf(r *audit.Record, policy *inForce, token capping.Token) *likeness {
	forgets := e.asked.since(token, r.Channel, r.At, e.longest) <= r.At-capping.Instant(e.shortest.Milliseconds()) &&
		e.shortest < e.longest
	switch {
	case e.cfg.Generation != "" && e.cfg.Generation != r.Generation:
		return &likeness{}
	case e.cfg.Policy == nil:
		return &likeness{all: true, rest: true}
	// If only one policy still keeps the earlier send of the message, the send is a repetition under this policy, and a
	// new send under the other policy.
	case forgets:
		return &likeness{}
	}
	key := alikeKey{r.Config, r.Channel, r.Exempt}
	if e.alike[key] == nil {
		e.alike[key] = compare(policy.Policy, e.cfg.Policy, r.Channel, r.Exempt)
	}
	return e.alike[key]
}

// The type firstAsked holds the time of the first call for each message, for as long as users' logs may hold a send of
// the message.
type firstAsked struct {
	young, old map[messageKey]capping.Instant
	began      capping.Instant // time when young was begun
}

type messageKey struct {
	token   capping.Token
	channel capping.Channel
}

func newFirstAsked() *firstAsked {
	return &firstAsked{young: map[messageKey]capping.Instant{}}
}

// The method "since" returns the time of the first call for a message, which may be the current call. If the last call
// for the message was longer ago than the argument "longest", the current call may count as the first.
func (f *firstAsked) since(token capping.Token, channel capping.Channel, now capping.Instant,
	longest time.Duration) capping.Instant {
	if f.began+capping.Instant(longest.Milliseconds()) < now {
		f.young, f.old, f.began = map[messageKey]capping.Instant{}, f.young, now
	}
	key := messageKey{token, channel}
	first, known := f.young[key]
	if !known {
		if first, known = f.old[key]; !known {
			first = now
		}
		f.young[key] = first
	}
	return first
}

// withholdsBySets reports whether the replay uses a policy that denies sends to the members of sets.
func (e *engine) withholdsBySets() bool {
	for _, p := range e.policies {
		if len(p.judging.capper.Policy().Sets()) > 0 {
			return true
		}
	}
	return false
}

// The method result returns the counts of the replay, with notes about the limits of these counts.
func (e *engine) result() *Result {
	r := e.tallies.result(e)
	if r.Generation = e.cfg.Generation; r.Generation != "" && e.withholdsBySets() {
		r.Notes = append(r.Notes, "the sets of generation "+r.Generation+" decide every call that used another "+
			"generation: changes of sets by calls are left out there")
	}
	if e.cfg.Policy != nil {
		r.Policy = e.cfg.Policy.Version
		r.Notes = append(r.Notes, absentRules(e.cfg.Policy, r.Limits)...)
	}
	slices.Sort(r.Configs)
	return r
}

// absentRules returns notes about rules that denied recorded sends, and that are missing in the alternative policy.
func absentRules(p *capping.Policy, denials []api.WhatIfChange) (notes []string) {
	for _, rule := range []struct {
		limit, key string
		absent     bool
	}{
		{api.LimitSuppressed, "suppress", len(p.Suppress) == 0},
		{api.LimitHoldout, "holdout", p.Holdout == nil},
		{api.LimitQuiet, "quiet", len(p.Quiet) == 0},
	} {
		for _, d := range denials {
			if rule.absent && d.Name == rule.limit && d.Before > 0 {
				notes = append(notes, fmt.Sprintf("these limits lack the key %s, whose rule denied %s of the recorded "+
					"sends: add the key to keep the rule", rule.key, number(d.Before)))
			}
		}
	}
	return notes
}
