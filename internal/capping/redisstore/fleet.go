package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/script"
	"capper/internal/capping/redisstore/topology"
	"capper/internal/zones"
)

// fleet is this instance among all that use the namespace: it renews what they
// keep in common, every few seconds, and looks whether it is still there.
type fleet struct {
	config   *Config
	top      *topology.Topology
	keyspace script.Keyspace
	marker   script.Marker
	beatLua  *script.Script
	widening time.Duration // of windows, see capping.Widening
	told     func()        // what follows a look at the records and signs

	mismatch atomic.Pointer[capping.FormatError] // another version has taken the keyspace
	warnings []string                            // what a start went on without
	// milliseconds: the retention of this instance's policy; 0: none was announced
	announced atomic.Int64
	id        string
	cancel    context.CancelFunc
	wait      sync.WaitGroup

	longest  atomic.Int64 // milliseconds: the longest retention in force, as far as known
	wanted   atomic.Int64 // milliseconds: of a call that was longer than announced
	seen     atomic.Pointer[sight]
	missed   atomic.Pointer[missed] // nil: the latest beat was heard
	loggedAt time.Time              // of the beats that failed
	made     bool                   // at this start, with nothing recorded

	mu  sync.Mutex // one beat at a time
	own announcement
}

// announcement is what an instance tells the others.
type announcement struct {
	retention time.Duration
	channels  map[string]capping.Channel
	text      map[string]string // compared key by key
}

// sight is what the latest beat found.
type sight struct {
	gone, channel error // the records are missing; a number contradicts what is stored
	fleet         capping.Fleet
	made          bool // the store is new since then
	adopted       bool // its record was missing until then
	format        int  // that the store is in; 0: not known
}

// newFleet is the fleet as one of the store's instances sees it. told follows
// every look at the records and signs.
func newFleet(s *Store, told func()) *fleet {
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails
	f := &fleet{
		config: &s.config, top: s.top, keyspace: s.keyspace, marker: s.marker, beatLua: s.scripts.Beat,
		widening: capping.Widening(s), told: told, id: hex.EncodeToString(id), cancel: func() {},
	}
	f.own.text = f.describe()
	f.seen.Store(&sight{})
	return f
}

// halted is why nothing may be decided, or nil.
func (f *fleet) halted() error {
	if m := f.mismatch.Load(); m != nil {
		return m
	}
	return f.seen.Load().channel
}

// markMismatched stops the store: another version has taken the keyspace.
func (f *fleet) markMismatched(found string) {
	err := f.marker.Refusal(found)
	if f.mismatch.CompareAndSwap(nil, err) {
		f.config.Logger.Error("the store stops deciding users", "error", err)
	}
}

// describe is what each instance has to have in common with the others,
// without a policy.
func (f *fleet) describe() map[string]string {
	return map[string]string{
		"replica_acks": f.config.ReplicaAcks.String(), "clock_skew": f.config.ClockSkew.String(),
	}
}

// announcementOf is the one of an instance with the policy.
func (f *fleet) announcementOf(p *capping.Policy) announcement {
	a := announcement{retention: p.Retention(f.widening), channels: p.Channels, text: f.describe()}
	var channels []string
	for _, name := range slices.Sorted(maps.Keys(p.Channels)) {
		channels = append(channels, fmt.Sprint(name, " ", p.Channels[name]))
	}
	a.text["config_version"], a.text["channels"] = p.Version, strings.Join(channels, ", ")
	a.text["zone_rules"] = zones.Version()
	return a
}

// announce is Store.Announce.
func (f *fleet) announce(ctx context.Context, p *capping.Policy) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.told()
	before, seen := f.own, f.seen.Load()
	f.own = f.announcementOf(p)
	f.wanted.Store(0)
	err := f.renew(ctx, script.LookOnly)
	if channel := f.seen.Load().channel; channel != nil {
		f.own = before
		f.seen.Store(seen)
		return channel
	}
	f.announced.Store(f.own.retention.Milliseconds())
	if err != nil {
		f.config.Logger.Warn("other instances do not know this configuration yet", "error", err)
	}
	return nil
}

// retention is the longest that is in force, as far as known.
func (f *fleet) retention() time.Duration {
	return time.Duration(f.longest.Load()) * time.Millisecond
}

// remarks returns warnings for operators about the instances and about the records that they share.
func (f *fleet) remarks(seen *sight) (remarks []string) {
	if f.made {
		remarks = append(remarks, "the store was created at this start without records: every user may receive a "+
			"message")
	}
	for _, remark := range []string{f.keptLonger(), f.olderFormat()} {
		if remark != "" {
			remarks = append(remarks, remark)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(seen.fleet.Differing)) {
		remarks = append(remarks, fmt.Sprintf("%d of %d other instances differ from this one in %s",
			seen.fleet.Differing[key], seen.fleet.Instances-1, key))
	}
	return remarks
}

// keptLonger says that sends are kept for a policy that was in force, or is
// elsewhere; "" when they are not.
func (f *fleet) keptLonger() string {
	own, longest := f.announced.Load(), f.longest.Load()
	if own == 0 || longest <= own {
		return ""
	}
	span := func(ms int64) string { return capping.Span(time.Duration(ms) * time.Millisecond) }
	return fmt.Sprintf("sends are kept for %s, although the limits of this instance look back only %s, because "+
		"longer limits were in force recently, here or in another instance",
		span(longest), span(own))
}

// extend is for how long a call keeps sends that needs them for the retention.
// Where that is longer than what is in force, it extends that.
func (f *fleet) extend(retention time.Duration) time.Duration {
	longest := f.longest.Load()
	if retention.Milliseconds() > longest {
		f.longest.CompareAndSwap(longest, retention.Milliseconds())
		f.wanted.Store(max(f.wanted.Load(), retention.Milliseconds()))
		f.beatSoon()
	}
	return max(retention, time.Duration(longest)*time.Millisecond)
}

// beatSoon asks for a beat.
func (f *fleet) beatSoon() { f.top.DoubtSigns() }

// compare counts the other instances, and by key those that differ in it.
func (a *announcement) compare(others map[string]string, made time.Time) capping.Fleet {
	told := map[string]map[string]string{}
	for id, description := range others {
		var text map[string]string
		if json.Unmarshal([]byte(description), &text) == nil {
			told[id] = text
		}
	}
	fleet := capping.Fleet{Instances: 1 + len(told), Made: made}
	for _, text := range told {
		for key, own := range a.text {
			if other, ok := text[key]; ok && other != own {
				if fleet.Differing == nil {
					fleet.Differing = map[string]int{}
				}
				fleet.Differing[key]++
			}
		}
	}
	return fleet
}
