package segments

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// leastGrace is the minimum time for which a Refresher keeps a replaced generation (published version) in memory
// without pins. Other instances of the service may load a new generation slightly later. Until the other instances have
// loaded the new generation, they return the old generation's name to callers.
const leastGrace = time.Minute

// earlyLook is the minimum time between two early checks of the source. If a request names a newer generation
// (published version) that this instance does not know, the Refresher checks the source early.
const earlyLook = time.Second

// DefaultKeep is the default time for which a Refresher keeps a replaced generation (published version) in memory after
// the last API call that named this generation.
const DefaultKeep = time.Hour

// MaxPinned is the maximum number of replaced generations (published versions) that a Refresher keeps in memory. If API
// calls have named more than MaxPinned replaced generations, the Refresher drops those that calls named longest ago.
const MaxPinned = 8

// Pinned describes a generation (published version) that a Refresher keeps in memory because a call has named (pinned)
// it.
type Pinned struct {
	Generation string
	PinnedAt   time.Time // time of the last pin
	Until      time.Time // time until which the Refresher keeps the generation, unless MaxPinned others are newer
}

// GoneError reports that a request names a generation (published version) that is neither in use nor still in memory.
type GoneError struct {
	Generation string
	InUse      string // empty: no generation is in use yet
}

func (e *GoneError) Error() string {
	if e.InUse == "" {
		return "no generation of segments is loaded yet"
	}
	return fmt.Sprintf("generation %q does not exist or is no longer available: generation %s is in use",
		e.Generation, e.InUse)
}

// NotYetError reports that a request names a newer generation (published version) than all generations that this
// service instance has used. Another instance of the service may already have loaded this newer generation.
type NotYetError struct {
	Generation string
	InUse      string
	Interval   time.Duration // time between two checks of the source
}

func (e *NotYetError) Error() string {
	return fmt.Sprintf("generation %s is not loaded yet: this instance checks every %s, and uses generation %s",
		e.Generation,
		e.Interval, e.InUse)
}

// Pin returns the named generation (published version) if it is in use or still in memory. The Refresher keeps the
// returned generation in memory for RefresherConfig.Keep, even if another generation replaces it. With an empty name,
// Pin returns the generation in use without pinning it. The error of Pin is a GoneError or a NotYetError. After a
// NotYetError, Run checks the source soon. The method Pin is safe for concurrent use.
func (r *Refresher) Pin(generation string) (*Snapshot, error) {
	now := r.Current()
	switch {
	case now == nil:
		return nil, &GoneError{Generation: generation}
	case generation == "":
		return now, nil
	case generation == now.Generation():
		r.pins.put(now)
		return now, nil
	}
	if s := r.pins.get(generation, now); s != nil {
		return s, nil
	}
	if IsGeneration(generation) && r.lookIfLater(generation) {
		return nil, &NotYetError{generation, now.Generation(), r.cfg.Interval}
	}
	return nil, &GoneError{Generation: generation, InUse: now.Generation()}
}

// lookIfLater reports whether the named generation (published version) is newer than every generation that this
// instance has used. If lookIfLater returns true, Run checks the source.
func (r *Refresher) lookIfLater(generation string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if generation <= r.newest {
		return false
	}
	if r.cfg.Clock().Sub(r.status.CheckedAt) >= earlyLook {
		select {
		case r.wake <- struct{}{}:
		default: // a check is already requested
		}
	}
	return true
}

// The struct "pins" stores the generations (published versions) that API calls have named (pinned). The struct "pins"
// also stores replaced generations that stay in memory for a short time without a pin. The generation in use may also
// be in pins.
type pins struct {
	keep  time.Duration // time for which a generation stays after a pin
	grace time.Duration // time for which a replaced generation stays without a pin; at most keep
	clock func() time.Time

	mu   sync.Mutex
	kept map[string]pin
}

type pin struct {
	snapshot *Snapshot
	at       time.Time // zero: never pinned
	until    time.Time
}

func newPins(cfg *RefresherConfig) *pins {
	grace := min(max(2*cfg.Interval, leastGrace), cfg.Keep)
	return &pins{keep: cfg.Keep, grace: grace, clock: cfg.Clock, kept: map[string]pin{}}
}

// The method "put" pins the generation (published version) of the snapshot s, which therefore stays in memory for the
// time pins.keep.
func (p *pins) put(s *Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold(s)
}

// The method "hold" pins a generation (published version): the generation stays in memory for the time pins.keep. The
// caller of the method "hold" holds the lock p.mu.
func (p *pins) hold(s *Snapshot) {
	now := p.clock()
	p.kept[s.Generation()] = pin{s, now, now.Add(p.keep)}
}

// The method "supersede" keeps the snapshot s in memory for at least the time p.grace, because the caller is about to
// replace s by a newer generation (published version). If p.grace is not above 0, "supersede" does nothing.
func (p *pins) supersede(s *Snapshot) {
	if p.grace <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(s)
	kept, until := p.kept[s.Generation()], p.clock().Add(p.grace)
	if kept.until.Before(until) {
		p.kept[s.Generation()] = pin{s, kept.at, until}
	}
}

// The method "get" returns the named generation (published version) if it is in memory, and renews the pin. If the
// named generation is not in memory, the method "get" returns nil.
func (p *pins) get(generation string, current *Snapshot) *Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(current)
	kept, ok := p.kept[generation]
	if ok {
		p.hold(kept.snapshot)
	}
	return kept.snapshot
}

// The method "expire" removes generations (published versions) from memory whose time in memory (pins.keep or
// pins.grace) has ended.
func (p *pins) expire(current *Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(current)
}

// The method "list" returns the generations (published versions) that API calls have named and that are therefore in
// memory, sorted by name.
func (p *pins) list(current *Snapshot) (list []Pinned) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(current)
	for _, generation := range slices.Sorted(maps.Keys(p.kept)) {
		if kept := p.kept[generation]; !kept.at.IsZero() {
			list = append(list, Pinned{generation, kept.at, kept.until})
		}
	}
	return list
}

// The method "snapshots" returns all generations (published versions) in pins, with or without a pin.
func (p *pins) snapshots() (list []*Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, kept := range p.kept {
		list = append(list, kept.snapshot)
	}
	return list
}

// sizeBytes returns the memory that the kept generations (published versions) take beside the generation in use, in
// bytes.
func (p *pins) sizeBytes(current *Snapshot) (size int64) {
	counted := map[any]bool{}
	current.beyond(counted)
	p.expire(current)
	for _, s := range p.snapshots() {
		size += s.beyond(counted)
	}
	return size
}

// The method "drop" removes generations (published versions) whose time in memory has ended. If more than MaxPinned
// replaced generations remain, the method "drop" removes further generations, first those without a pin. The caller of
// the method "drop" holds the lock p.mu.
func (p *pins) drop(current *Snapshot) {
	now := p.clock()
	maps.DeleteFunc(p.kept, func(_ string, kept pin) bool { return !now.Before(kept.until) })
	var earlier []string
	for generation := range p.kept {
		if current == nil || generation != current.Generation() {
			earlier = append(earlier, generation)
		}
	}
	slices.SortFunc(earlier, func(a, b string) int {
		if c := p.kept[b].at.Compare(p.kept[a].at); c != 0 {
			return c
		}
		return strings.Compare(b, a)
	})
	for _, generation := range earlier[min(len(earlier), MaxPinned):] {
		delete(p.kept, generation)
	}
}
