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

// The type "fleet" connects this instance with all instances that use the same namespace in Redis. Every five seconds,
// the fleet renews the records in Redis that the instances share, and checks that these records still exist.
type fleet struct {
	config   *Config
	top      *topology.Topology
	keyspace script.Keyspace
	marker   script.Marker
	beatLua  *script.Script
	widening time.Duration // extra time of rolling windows, see capping.Widening
	told     func()        // called after each check of the records and sentinel keys
	// useDepth changes the depth of the store (number of id image bits that choose a bucket) during the start, and
	// returns the new format marker.
	useDepth func(depth int) script.Marker
	// beginRestoration begins to restore the live changes of partitions (see liveLogs.begin).
	beginRestoration func(ctx context.Context, partitions []int) (failed map[int]error)

	mismatch atomic.Pointer[capping.FormatError] // set when another version or configuration has taken the keyspace
	warnings []string                            // warnings about losses of data that a start has accepted
	// The field "announced" is the retention of this instance's policy in milliseconds; 0 means that no policy was
	// announced yet.
	announced atomic.Int64
	id        string
	cancel    context.CancelFunc
	wait      sync.WaitGroup

	longest  atomic.Int64                               // milliseconds: the longest known retention in force
	wanted   atomic.Int64                               // retention in ms that a call needed, if longer than announced
	asOf     atomic.Pointer[map[string]capping.Instant] // as-of instants by set; nil: not reported yet
	seen     atomic.Pointer[sight]
	missed   atomic.Pointer[missed] // nil: the latest heartbeat succeeded
	loggedAt time.Time              // time of the last log line about failed heartbeats
	made     bool                   // this start created the store without any records

	mu  sync.Mutex // serializes heartbeats
	own announcement
}

// An announcement describes the configuration of an instance. Each instance sends its announcement to the others with
// its heartbeats.
type announcement struct {
	retention time.Duration
	channels  map[string]capping.Channel
	text      map[string]string // each instance compares these values with its own
}

// The type "sight" holds the contents of the reply to the latest heartbeat: the state of the store and of the other
// instances.
type sight struct {
	gone, channel error // gone: the shared records are missing; channel: a channel's number contradicts the stored one
	fleet         capping.Fleet
	made          bool // the heartbeat created the store
	adopted       bool // the heartbeat found a format marker without the store's record
	format        int  // format version of the store; 0: not known
	// othersAsOf holds the oldest as-of time (time of export) of each set in the other instances; nil: an instance has
	// reported no times.
	othersAsOf map[string]capping.Instant
	others     instances
}

// The method "instances" returns this instance and the other instances in the reply to the latest heartbeat.
func (f *fleet) instances() instances {
	all := f.seen.Load().others
	all.own = f.id
	return all
}

// newFleet returns the fleet of a store, which connects this instance with the other instances. The fleet calls the
// function "told" after every check of the shared records and sentinel keys (marker keys that reveal lost data).
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

// The method "halted" returns the reason why this instance makes no decisions, or nil if the instance makes decisions.
func (f *fleet) halted() error {
	if m := f.mismatch.Load(); m != nil {
		return m
	}
	return f.seen.Load().channel
}

// markMismatched stops all decisions of this instance, because another version or configuration has taken over the keys
// of the store.
func (f *fleet) markMismatched(found string) {
	err := f.marker.Refusal(found)
	if f.mismatch.CompareAndSwap(nil, err) {
		f.config.Logger.Error("the store stops deciding users", "error", err)
	}
}

// The method "describe" returns the settings that must be equal in all instances, except the policy.
func (f *fleet) describe() map[string]string {
	return map[string]string{
		"replica_acks": f.config.ReplicaAcks.String(), "clock_skew": f.config.ClockSkew.String(),
	}
}

// announcementOf returns the announcement that this instance must send while its policy is p.
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

// The method "announce" implements Store.Announce.
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
		f.config.Logger.Warn("the configuration could not be announced to other instances yet", "error", err)
	}
	return nil
}

// The method "retention" returns the time for which the store keeps sends: the longest retention in force that this
// instance knows.
func (f *fleet) retention() time.Duration {
	return time.Duration(f.longest.Load()) * time.Millisecond
}

// The method "remarks" returns warnings for operators about the other instances and about the shared records in Redis.
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

// keptLonger returns a warning if the store keeps sends longer than the policy of this instance needs; otherwise,
// keptLonger returns "".
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

// The method "extend" returns the retention (time for which sends are kept) of a call: the longer of the given
// retention and the retention in force. If the given retention is longer than the retention in force, "extend" puts the
// given retention in force.
func (f *fleet) extend(retention time.Duration) time.Duration {
	longest := f.longest.Load()
	if retention.Milliseconds() > longest {
		f.longest.CompareAndSwap(longest, retention.Milliseconds())
		f.wanted.Store(max(f.wanted.Load(), retention.Milliseconds()))
		f.beatSoon()
	}
	return max(retention, time.Duration(longest)*time.Millisecond)
}

// beatSoon makes the fleet send its next heartbeat immediately.
func (f *fleet) beatSoon() { f.top.DoubtSigns() }

// The method "compare" counts the instances that share the store. For each key of the announcement, "compare" also
// counts the other instances whose value differs from this instance's value.
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
