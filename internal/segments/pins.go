package segments

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// DefaultKeep is how long an earlier generation is kept after it was last pinned.
const DefaultKeep = time.Hour

// MaxPinned is how many earlier generations are kept: beyond it the one that was
// pinned longest ago goes first.
const MaxPinned = 8

// Pinned is a generation that is kept because somebody pinned it.
type Pinned struct {
	Generation string
	PinnedAt   time.Time // the last time
	Until      time.Time // it is kept so long at least while no more than MaxPinned are
}

// GoneError says that a generation which was asked for is neither in use nor kept.
type GoneError struct {
	Generation string
	InUse      string // empty: none is in use yet
}

func (e *GoneError) Error() string {
	if e.InUse == "" {
		return "no generation is in use yet"
	}
	return fmt.Sprintf("generation %q is gone, or was never here: generation %s is in use", e.Generation, e.InUse)
}

// Pin returns the generation in use, or an earlier one that is still kept, by its name,
// and keeps it from now for RefresherConfig.Keep, whatever is swapped in meanwhile. An
// empty name is the generation in use, and pins nothing. The error is a GoneError. Safe
// at any time from any goroutine.
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
	return nil, &GoneError{Generation: generation, InUse: now.Generation()}
}

// pins are the generations that somebody pinned, the one in use among them.
type pins struct {
	keep  time.Duration
	clock func() time.Time

	mu   sync.Mutex
	kept map[string]pin
}

type pin struct {
	snapshot *Snapshot
	at       time.Time
}

// put pins a generation.
func (p *pins) put(s *Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept == nil {
		p.kept = map[string]pin{}
	}
	p.kept[s.Generation()] = pin{s, p.clock()}
}

// get pins a generation that is kept again; nil when it is not kept.
func (p *pins) get(generation string, current *Snapshot) *Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(current)
	kept, ok := p.kept[generation]
	if ok {
		p.kept[generation] = pin{kept.snapshot, p.clock()}
	}
	return kept.snapshot
}

// expire lets go of what is kept no longer.
func (p *pins) expire(current *Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(current)
}

// list is what is kept, by name.
func (p *pins) list(current *Snapshot) (list []Pinned) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(current)
	for _, generation := range slices.Sorted(maps.Keys(p.kept)) {
		at := p.kept[generation].at
		list = append(list, Pinned{generation, at, at.Add(p.keep)})
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

// drop lets go of what was pinned too long ago, and of what is too many; p.mu is held.
func (p *pins) drop(current *Snapshot) {
	now := p.clock()
	maps.DeleteFunc(p.kept, func(_ string, kept pin) bool { return now.Sub(kept.at) >= p.keep })
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
