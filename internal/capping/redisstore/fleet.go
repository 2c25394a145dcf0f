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
	"capper/internal/capping/redisstore/topology"
)

// fleet is this instance among all that use the namespace: it renews what they
// keep in common, every few seconds, and looks whether it is still there.
type fleet struct {
	store     *Store
	announced atomic.Int64 // milliseconds: the retention of this instance's policy; 0: none was announced
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
}

func newFleet(s *Store) *fleet {
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails
	f := &fleet{store: s, id: hex.EncodeToString(id), cancel: func() {}}
	f.own.text = f.describe()
	f.seen.Store(&sight{})
	return f
}

// describe is what each instance has to have in common with the others,
// without a policy.
func (f *fleet) describe() map[string]string {
	return map[string]string{
		"replica_acks": f.store.config.ReplicaAcks.String(), "clock_skew": f.store.config.ClockSkew.String(),
	}
}

// announcementOf is the one of an instance with the policy.
func (f *fleet) announcementOf(p *capping.Policy) announcement {
	a := announcement{retention: p.Retention(capping.Widening(f.store)), channels: p.Channels, text: f.describe()}
	var channels []string
	for _, name := range slices.Sorted(maps.Keys(p.Channels)) {
		channels = append(channels, fmt.Sprint(name, " ", p.Channels[name]))
	}
	a.text["config_version"], a.text["channels"] = p.Version, strings.Join(channels, ", ")
	return a
}

// Announce tells the other instances which policy this one is about to decide
// by: call it before the first call under the policy. From then on nothing is
// forgotten that the policy can see. It refuses numbers of channels that
// contradict what is stored. What cannot be told now is told as soon as it can.
func (s *Store) Announce(ctx context.Context, p *capping.Policy) error {
	f := s.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	defer s.metrics.fleet(f)
	before, seen := f.own, f.seen.Load()
	f.own = f.announcementOf(p)
	f.wanted.Store(0)
	err := f.renew(ctx, lookOnly)
	if channel := f.seen.Load().channel; channel != nil {
		f.own = before
		f.seen.Store(seen)
		return channel
	}
	f.announced.Store(f.own.retention.Milliseconds())
	if err != nil {
		s.config.Logger.Warn("the other instances do not know of this configuration yet", "error", err)
	}
	return nil
}

// Retention is the longest that any instance has had in force within itself:
// so long sends are kept.
func (s *Store) Retention() time.Duration {
	return time.Duration(s.fleet.longest.Load()) * time.Millisecond
}

// keptLonger says that sends are kept for a policy that was in force, or is
// elsewhere; "" when they are not.
func (f *fleet) keptLonger() string {
	own, longest := f.announced.Load(), f.longest.Load()
	if own == 0 || longest <= own {
		return ""
	}
	span := func(ms int64) string { return capping.Span(time.Duration(ms) * time.Millisecond) }
	return fmt.Sprintf("sends are kept for %s, though the limits here look back %s: so long they looked back within that time, here or in another instance",
		span(longest), span(own))
}

// forget is for how long a call keeps sends that needs them for the retention.
func (f *fleet) forget(retention time.Duration) time.Duration {
	longest := f.longest.Load()
	if retention.Milliseconds() > longest {
		f.longest.CompareAndSwap(longest, retention.Milliseconds())
		f.wanted.Store(max(f.wanted.Load(), retention.Milliseconds()))
		f.kick()
	}
	return max(retention, time.Duration(longest)*time.Millisecond)
}

// kick asks for a beat soon.
func (f *fleet) kick() { f.store.top.DoubtSigns() }

// compare counts the other instances, and by key those that differ in it.
func (a *announcement) compare(others []string, made time.Time) capping.Fleet {
	told := map[string]map[string]string{}
	for i := 0; i+1 < len(others); i += 2 {
		var text map[string]string
		if json.Unmarshal([]byte(others[i+1]), &text) == nil {
			told[others[i]] = text
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

// start makes or finds the records and the signs, and says what is new or lost.
func (f *fleet) start(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := makeOrMend
	if f.store.config.MustExist {
		m = adopt
	}
	for {
		err := f.renew(ctx, m)
		if err == nil {
			break
		}
		if pause(ctx, startPause); ctx.Err() != nil {
			return err
		}
	}
	if m := f.store.mismatch.Load(); m != nil {
		return m
	}
	if f.seen.Load().gone != nil {
		return fmt.Errorf("no store is in namespace %s: either it was never used, or what was recorded is lost: "+
			"set store.redis.create: true to begin anew", f.store.config.Namespace)
	}
	found := f.lookAtSigns(ctx, nil)
	defer f.store.metrics.fleet(f)
	switch {
	case !f.seen.Load().made:
	case found.Made == found.Any:
		f.made = true
	default:
		f.beganAnew(fmt.Sprintf("the store's records and the signs of %d of %d partitions were gone, and what was recorded there", found.Made, found.Any))
	}
	return f.mend(ctx)
}

// beganAnew says what a start went on without.
func (f *fleet) beganAnew(what string) {
	warning := "begun anew with what is left: " + what
	f.store.warnings = append(f.store.warnings, warning)
	f.store.config.Logger.Error("Redis store", "warning", warning)
}

// mend begins anew where a start finds that records are lost, which is what its
// operator started it for, unless he said otherwise.
func (f *fleet) mend(ctx context.Context) error {
	accepted, whats := map[int]bool{}, map[string]int{}
	for p, bar := range f.store.top.Lost() {
		accepted[p] = true
		whats[bar.What()]++
	}
	if len(accepted) == 0 {
		return nil
	}
	for what, n := range whats {
		warning := fmt.Sprintf("%d of %d partitions, that of the records among them: %s", n, f.store.layout.Partitions+1, what)
		if f.store.config.MustExist {
			return fmt.Errorf("%s: set store.redis.create: true to begin anew with what is left", warning)
		}
		f.beganAnew(warning)
	}
	f.lookAtSigns(ctx, accepted)
	return nil
}

// lookAtSigns has the topology look at all signs. Until all signs have been made
// once, missing ones are made. accept: what a start found and its operator takes
// as it is.
func (f *fleet) lookAtSigns(ctx context.Context, accept map[int]bool) topology.Seen {
	t := f.store.top
	look := topology.Look{
		Make: !t.Signed() && f.seen.Load().gone == nil, Accept: accept,
		Life: max(leastLife, 2*time.Duration(f.longest.Load())*time.Millisecond),
	}
	seen := t.LookAtSigns(ctx, look)
	if look.Make && seen.All {
		f.allSigned(ctx)
	}
	return seen
}

// allSigned notes that every sign has been made: from now on a missing one is
// one that was lost.
func (f *fleet) allSigned(ctx context.Context) {
	s := f.store
	if n := s.top.Route(s.layout.FormatPartition()); n != nil && n.Client().HSet(ctx, s.marker.Key+":store", "signed", "1").Err() == nil {
		s.top.SetSigned(true)
	}
}
