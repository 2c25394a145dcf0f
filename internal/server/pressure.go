package server

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/pressure"
	"capper/internal/server/wire"
)

// A Pressure function counts the messages per person in the audit (record of all decisions) of all instances; see
// pressure.Of. A Pressure function returns as soon as its context ends.
type Pressure func(ctx context.Context, cfg pressure.Config) (*pressure.Result, error)

// pressureParameters lists the query parameters of GET /v1/pressure.
var pressureParameters = []string{"weeks", "until", "channel", "namespace", "max", "segment", "limit"}

// These constants limit the calls of GET /v1/pressure.
const (
	pressureTime   = 12        // the time limit, as a multiple of the usual time limit of a call
	pressureBytes  = 512 << 20 // the memory in bytes for counting users in one pass over the audit
	pressureAtOnce = 2         // the maximum number of simultaneous counts
	pressureKept   = 16        // the maximum number of cached responses
	pressureFresh  = time.Minute
	pressureUsers  = 1_000_000 // the maximum number of user ids in a response, for ids that are not dense
)

// The type "pressures" limits the number of simultaneous calls of GET /v1/pressure that count messages per person, and
// caches the latest responses. The zero value is ready for use. The type "pressures" is safe for concurrent use.
type pressures struct {
	mu      sync.Mutex
	running map[string]*runningPressure // by API key
	kept    map[pressureKey]keptPressure
}

// pressureKey holds the parameters of a request whose response is cached.
type pressureKey struct {
	weeks, most        int
	until              string
	channel, namespace string
	byChannel, bySpace bool
	generation, config string
	atLimit            pressure.AtLimit // for a list of users, which is not cached
	list               bool
}

// runningPressure describes a running call that counts the messages per person.
type runningPressure struct {
	question pressureKey
	done     chan struct{}
}

type keptPressure struct {
	answer *api.Pressure
	at     time.Time
}

// The method enter lets a call with the API key begin a count of messages per person, or returns an error. When the
// count has finished, the caller must call the function leave that enter() returned. If another call already counts
// with the same parameters, enter() returns the Go channel "ended", which closes when the other count ends.
func (p *pressures) enter(key string, question *pressureKey) (leave func(), ended <-chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !question.list {
		for _, other := range p.running {
			if other.question == *question {
				return nil, other.done, nil
			}
		}
	}
	switch {
	case p.running[key] != nil:
		return nil, nil, wire.Overloaded("another count of the pressure by this key is not finished, and a key " +
			"has one at a time")
	case len(p.running) >= pressureAtOnce:
		return nil, nil, wire.Overloaded("counts of the pressure by other keys are not finished")
	case p.running == nil:
		p.running = map[string]*runningPressure{}
	}
	r := &runningPressure{*question, make(chan struct{})}
	p.running[key] = r
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.running, key)
		close(r.done)
	}, nil, nil
}

// The method find returns the cached response to a request with the parameters in key. If the cache has no response
// that is less than a minute old, the method find returns nil.
func (p *pressures) find(key *pressureKey, now time.Time) *api.Pressure {
	p.mu.Lock()
	defer p.mu.Unlock()
	if kept, known := p.kept[*key]; known && now.Sub(kept.at) < pressureFresh {
		return kept.answer
	}
	return nil
}

// The method keep adds a response to the cache. If the cache is full, keep() removes the oldest response.
func (p *pressures) keep(key *pressureKey, answer *api.Pressure, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept == nil {
		p.kept = map[pressureKey]keptPressure{}
	}
	p.kept[*key] = keptPressure{answer, now}
	for len(p.kept) > pressureKept {
		var oldest pressureKey
		at := now.Add(time.Hour)
		for k, kept := range p.kept {
			if kept.at.Before(at) {
				oldest, at = k, kept.at
			}
		}
		delete(p.kept, oldest)
	}
}

// The method pressure serves GET /v1/pressure, which counts the messages per person. If the caller disconnects, the
// server stops the count.
func (s *Server) pressure(c *call) error {
	cfg, key, err := s.pressureConfig(c)
	switch {
	case err != nil:
		return err
	case s.countPressure == nil:
		return noAudit()
	}
	ctx, cancel := context.WithTimeout(c.ctx, pressureTime*s.bounds.CallTimeout)
	defer cancel()
	answer, err := s.pressureOf(ctx, cmp.Or(c.Key, c.holder), &key, cfg)
	if err != nil {
		return err
	}
	return writeJSON(c.w, pressureFor(answer, c.Namespace))
}

// pressureOf returns a cached response for the parameters, or counts the messages per person. If another call already
// counts with the same parameters, pressureOf waits for the other call and returns its response.
func (s *Server) pressureOf(ctx context.Context, holder string, key *pressureKey, cfg pressure.Config) (*api.Pressure,
	error) {
	for {
		if answer := s.pressures.find(key, s.clock()); answer != nil {
			return answer, nil
		}
		leave, ended, err := s.pressures.enter(holder, key)
		if err != nil {
			return nil, err
		}
		if ended == nil {
			defer leave()
			return s.countedPressure(ctx, key, cfg)
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return nil, pressureFailure(ctx, ctx.Err())
		}
	}
}

func (s *Server) countedPressure(ctx context.Context, key *pressureKey, cfg pressure.Config) (*api.Pressure, error) {
	now := s.clock()
	result, err := s.countPressure(ctx, cfg)
	if err != nil {
		return nil, pressureFailure(ctx, err)
	}
	if key.list {
		return result.Pressure, s.addAtLimit(result, cfg.AtLimit)
	}
	s.addTitles(ctx, "", titlesOfPressure(result.Pressure)) // the function hidden removes the titles of other teams
	s.pressures.keep(key, result.Pressure, now)
	return result.Pressure, nil
}

// pressureFailure converts an error that occurred while counting the messages per person to a failure for the caller.
func pressureFailure(ctx context.Context, err error) error {
	if context.Cause(ctx) == context.DeadlineExceeded {
		f := wire.NewFailure(api.CodeUnavailable, "the audit of these weeks could not be read in time: "+
			"request fewer weeks, or use the command capper pressure --audit, which has no time limit")
		f.Cause = err
		return f
	}
	return unreadable(err)
}

// pressureConfig converts the query parameters of GET /v1/pressure to the settings for counting the messages per
// person.
func (s *Server) pressureConfig(c *call) (cfg pressure.Config, key pressureKey, err error) {
	policy := s.capper.Policy()
	cfg = pressure.Config{Policy: policy, Widen: s.capper.Widening(), MemoryBytes: pressureBytes}
	if cfg.Until, err = pastUntil(c.parameters["until"], s.clock()); err != nil {
		return cfg, key, err
	}
	if cfg.Weeks, err = numberOf(c.parameters, "weeks", pressure.DefaultWeeks, pressure.MaxWeeks); err != nil {
		return cfg, key, err
	}
	if cfg.Most, err = numberOf(c.parameters, "max", pressure.DefaultMost, mostMax); err != nil {
		return cfg, key, err
	}
	if name, given := c.parameters["channel"]; given {
		channel, err := wire.ChannelOf(name, policy)
		if err != nil {
			return cfg, key, err
		}
		cfg.Channel = &channel
	}
	if _, given := c.parameters["namespace"]; given {
		namespace, err := callerOf(c).namespace()
		if err != nil {
			return cfg, key, err
		}
		cfg.Namespace = &namespace
	}
	if snapshot := s.inUse(); snapshot != nil {
		cfg.In(snapshot)
		key.generation = snapshot.Generation()
	}
	if cfg.AtLimit, err = atLimitOf(c.parameters, &cfg); err != nil {
		return cfg, key, err
	}
	key.weeks, key.most, key.until, key.config = cfg.Weeks, cfg.Most, c.parameters["until"], policy.Version
	key.channel, key.byChannel = c.parameters["channel"], cfg.Channel != nil
	key.namespace, key.bySpace = c.parameters["namespace"], cfg.Namespace != nil
	if key.list = cfg.AtLimit != nil; key.list {
		key.atLimit = *cfg.AtLimit
	}
	return cfg, key, nil
}

// atLimitOf returns the segment and the limit if the call requests the users who have reached a limit. If the call
// does not request users, atLimitOf returns nil.
func atLimitOf(parameters map[string]string, cfg *pressure.Config) (*pressure.AtLimit, error) {
	segment, given := parameters["segment"]
	limit, byLimit := parameters["limit"]
	switch {
	case !given && byLimit:
		return nil, wire.Invalid("limit", "requires segment, because the call lists the users of one segment at a "+
			"limit")
	case !given:
		return nil, nil
	case segment == api.NoSegment:
		segment = ""
	case cfg.Segments == nil || !slices.Contains(cfg.Segments.Names(), segment):
		return nil, wire.Invalid("segment", "%q is not a segment of the generation in use", wire.Clip([]byte(segment)))
	}
	if byLimit && !slices.ContainsFunc(cfg.Policy.Limits(segment), func(l capping.Limit) bool {
		return l.Name == limit && !l.Shadow && l.Max > 0
	}) {
		return nil, wire.Invalid("limit", "%q is not a limit of this segment", wire.Clip([]byte(limit)))
	}
	return &pressure.AtLimit{Segment: segment, Limit: limit}, nil
}

// pastUntil parses the query parameter "until", which is the end of the latest week to count. If the parameter
// "until" is absent, pastUntil returns the current time.
func pastUntil(text string, now time.Time) (capping.Instant, error) {
	if text == "" {
		return capping.InstantOf(now) + 1, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		at, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		if at.After(now.Add(wire.Slack)) {
			return 0, wire.Invalid("until", "%s is in the future: the time is now %s", wire.Clip([]byte(text)),
				now.UTC().Format(api.Milliseconds))
		}
		if instant := capping.InstantOf(at); instant > 0 {
			return instant, nil
		}
	}
	return 0, wire.Invalid("until", "%q must be a time (RFC 3339) or a date, after 2024", wire.Clip([]byte(text)))
}

func numberOf(parameters map[string]string, name string, usual, most int) (int, error) {
	text, given := parameters[name]
	if !given {
		return usual, nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n < 1 || n > uint64(most) {
		return 0, wire.Invalid(name, "%s is not a number from 1 to %d", wire.Clip([]byte(text)), most)
	}
	return int(n), nil
}

// addAtLimit adds to the response the users who have reached a limit.
func (s *Server) addAtLimit(result *pressure.Result, asked *pressure.AtLimit) error {
	list := &api.PressureUsers{Segment: cmp.Or(asked.Segment, api.NoSegment), Limit: asked.Limit}
	result.AtLimit = list
	if s.ids == nil {
		b := roaring.New()
		if _, err := b.ReadFrom(bytes.NewReader(result.Users.Bytes())); err != nil {
			return err
		}
		list.UsersBitmap = &api.Bitmap{Bitmap: b}
		return nil
	}
	if len(result.Images) > pressureUsers {
		return wire.NewFailure(api.CodeConflict, "%d users are at the limit, but a response lists at most %d: "+
			"list them with capper pressure --audit", len(result.Images), pressureUsers)
	}
	name := s.name()
	list.UserIDs = []string{}
	for _, image := range result.Images {
		list.UserIDs = append(list.UserIDs, string(name(nil, image)))
	}
	return nil
}

// pressureFor returns a copy of the response for an API key with a namespace, in which the ids of other namespaces'
// messages are removed.
func pressureFor(p *api.Pressure, namespace string) *api.Pressure {
	if namespace == "" {
		return p
	}
	own := *p
	own.Campaigns = []api.PressureCampaign{}
	places := map[api.PressureMessage]int{}
	for _, c := range p.Campaigns {
		c.PressureMessage = hidden(c.PressureMessage, namespace)
		place, known := places[c.PressureMessage]
		if !known {
			places[c.PressureMessage] = len(own.Campaigns)
			c.Messages, c.Released, c.HeldBack = slices.Clone(c.Messages), slices.Clone(c.Released),
				slices.Clone(c.HeldBack)
			own.Campaigns = append(own.Campaigns, c)
			continue
		}
		to := &own.Campaigns[place]
		for i := range c.Messages {
			to.Messages[i] += c.Messages[i]
			to.Released[i] += c.Released[i]
			to.HeldBack[i] += c.HeldBack[i]
		}
	}
	own.HeldBack = []api.PressureHeld{}
	for _, h := range p.HeldBack {
		if h.Namespace != namespace {
			continue
		}
		h.TakenBy = slices.Clone(h.TakenBy)
		for i := range h.TakenBy {
			h.TakenBy[i].PressureMessage = hidden(h.TakenBy[i].PressureMessage, namespace)
		}
		own.HeldBack = append(own.HeldBack, h)
	}
	return &own
}

// The function "hidden" returns the message m, without its id and title if m belongs to another namespace.
func hidden(m api.PressureMessage, namespace string) api.PressureMessage {
	if m.Namespace != namespace {
		m.MessageID, m.Title = "", ""
	}
	return m
}
