package segments

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// leastGrace is how long an earlier generation that nobody pinned is kept at least: other
// instances that take over the next one a little later give out its name until then.
const leastGrace = time.Minute

// earlyLook is how long after a look at the source somebody who asks for a generation
// that is not here yet brings about the next one.
const earlyLook = time.Second

// DefaultKeep is how long an earlier generation is kept after it was last pinned.
const DefaultKeep = time.Hour

// MaxPinned is how many earlier generations are kept: beyond it the one that was
// pinned longest ago goes first.
const MaxPinned = 8

// Pinned is a generation that is kept because somebody pinned it.
type Pinned struct {
	Generation string
	PinnedAt   time.Time // the last time
	Until      time.Time // it is kept so long while no more than MaxPinned are
}

// GoneError says that a generation which was asked for is neither in use nor kept.
type GoneError struct {
	Generation string
	InUse      string // empty: none is in use yet
}

func (e *GoneError) Error() string {
	if e.InUse == "" {
		return "no generation of segments is loaded yet"
	}
	return fmt.Sprintf("generation %q does not exist or is no longer available: generation %s is in use",
		e.Generation, e.InUse)
}

// NotYetError says that a generation which was asked for is later than all that were in
// use here: another instance has taken it over already.
type NotYetError struct {
	Generation string
	InUse      string
	Interval   time.Duration // between two looks at the source
}

func (e *NotYetError) Error() string {
	return fmt.Sprintf("generation %s is not loaded yet: this instance checks every %s, and uses generation %s",
		e.Generation,
		e.Interval, e.InUse)
}

// Pin returns the generation in use, or an earlier one that is still kept, by its name,
// and keeps it from now for RefresherConfig.Keep, whatever is swapped in meanwhile. An
// empty name is the generation in use, and pins nothing. The error is a GoneError, or a
// NotYetError, after which Run looks at the source soon. Safe at any time from any goroutine.
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

// lookIfLater reports whether a generation is later than all that were in use here, and
// has Run look at the source if it is.
func (r *Refresher) lookIfLater(generation string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if generation <= r.newest {
		return false
	}
	if r.cfg.Clock().Sub(r.status.CheckedAt) >= earlyLook {
		select {
		case r.wake <- struct{}{}:
		default: // it will
		}
	}
	return true
}

// pins are the generations that somebody pinned, the one in use among them, and earlier
// ones in their grace.
type pins struct {
	keep  time.Duration // after a pin
	grace time.Duration // after the swap, of those without a pin; at most keep
	clock func() time.Time

	mu   sync.Mutex
	kept map[string]pin
}

type pin struct {
	snapshot *Snapshot
	at       time.Time // zero: nobody pinned it
	until    time.Time
}

func newPins(cfg *RefresherConfig) *pins {
	grace := min(max(2*cfg.Interval, leastGrace), cfg.Keep)
	return &pins{keep: cfg.Keep, grace: grace, clock: cfg.Clock, kept: map[string]pin{}}
}

// put pins a generation.
func (p *pins) put(s *Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold(s)
}

// hold pins a generation; p.mu is held.
func (p *pins) hold(s *Snapshot) {
	now := p.clock()
	p.kept[s.Generation()] = pin{s, now, now.Add(p.keep)}
}

// supersede keeps the generation in use, which another is about to take the place of,
// for its grace at least.
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

// get pins a generation that is kept again; nil when it is not kept.
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

// expire lets go of what is kept no longer.
func (p *pins) expire(current *Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(current)
}

// list is what is kept because somebody pinned it, by name.
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

// snapshots are what is kept.
func (p *pins) snapshots() (list []*Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, kept := range p.kept {
		list = append(list, kept.snapshot)
	}
	return list
}

// sizeBytes is the memory of what is kept beyond what the one in use takes.
func (p *pins) sizeBytes(current *Snapshot) (size int64) {
	counted := map[any]bool{}
	current.beyond(counted)
	p.expire(current)
	for _, s := range p.snapshots() {
		size += s.beyond(counted)
	}
	return size
}

// drop lets go of what was pinned too long ago, and of what is too many, first of what
// nobody pinned; p.mu is held.
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
