package pacing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"
)

// Share is a part of a pacer that is kept for the calls of the share.
type Share struct {
	Name    string
	Percent int // of the rate and of each limit, 1 to 100
}

// The bounds of shares.
const (
	MaxShares = 8
	// KeptFor is how long a share keeps its part of a rate or a short limit after the latest call of the share.
	KeptFor = 5 * time.Second
	// SoonWindow is the longest window of a limit of which others may use the part. What they took from a longer one
	// would not come back soon, so it keeps the part for the share at all times.
	SoonWindow = 2 * time.Second
	// RestAhead is how far ahead others get slots at a pacer with shares, at least: see Pacer.restAhead.
	RestAhead = 500 * time.Millisecond
)

// kept is a limit of a pacer as its shares divide it.
type kept struct {
	Limit
	parts []int // by share: the part of Max
	soon  bool  // others may use the part while the share is not asked for
}

// leastPeriod is the shortest time over which a rate is divided. Others get a row of slots in each of them, and a
// shorter one would make more rows than a log can hold ahead.
const leastPeriod = 50 * time.Millisecond

// divided returns the pacer's limits as its shares divide them. A rate becomes a limit of a whole number of its
// intervals, because others must leave whole intervals to the share.
func (p *Pacer) divided() (limits []kept) {
	for _, limit := range p.Limits {
		k := kept{Limit: limit, soon: limit.Window <= SoonWindow}
		for _, s := range p.Shares {
			k.parts = append(k.parts, (limit.Max*s.Percent+99)/100)
		}
		limits = append(limits, k)
	}
	if p.Rate.Permits > 0 {
		interval, parts := p.Rate.Interval(), divide(p.Shares)
		times := max(1, int((leastPeriod-1)/(interval*time.Duration(parts[0]))+1))
		k := kept{Limit: Limit{parts[0] * times, interval * time.Duration(parts[0]*times)}, soon: true}
		for _, n := range parts[1:] {
			k.parts = append(k.parts, n*times)
		}
		limits = append(limits, k)
	}
	return limits
}

// divide returns the least number of equal parts of which whole ones are the shares, up to one percent more than
// their own; then the number of parts of each share.
func divide(shares []Share) (parts []int) {
	for n := 1; ; n++ {
		parts = append(parts[:0], n)
		for _, s := range shares {
			own := (s.Percent*n + 99) / 100
			if own*100 > (s.Percent+1)*n {
				break
			}
			parts = append(parts, own)
		}
		if len(parts) > len(shares) {
			return parts
		}
	}
}

// Period returns the time over which a rate is divided, or 0 without a rate.
func (p *Pacer) Period() time.Duration {
	if p.Rate.Permits == 0 {
		return 0
	}
	limits := p.divided()
	return limits[len(limits)-1].Window
}

// restAhead returns how far ahead the pacer gives out slots to calls without a share: RestAhead, or two intervals of a
// slow rate. A share that begins to be asked for gets its part after these slots.
func (p *Pacer) restAhead() time.Duration {
	ahead := RestAhead
	if p.Rate.Permits > 0 {
		ahead = max(ahead, 2*p.Rate.Interval())
	}
	return min(ahead, p.LongestWait())
}

// ownAhead returns how far ahead a call of a share gets slots of its part before it asks for those of others.
func (p *Pacer) ownAhead() time.Duration { return max(leastPeriod, p.Period()) }

// share returns the index of the pacer's share with the given name, or -1.
func (p *Pacer) share(name string) int {
	for i := range p.Shares {
		if p.Shares[i].Name == name && name != "" {
			return i
		}
	}
	return -1
}

// shareName returns the name of the pacer's share with the given index, or "" for -1.
func (p *Pacer) shareName(share int) string {
	if share < 0 {
		return ""
	}
	return p.Shares[share].Name
}

// HasShare reports whether the pacer has a share with the given name.
func (p *Pacer) HasShare(name string) bool { return p.share(name) >= 0 }

// partTarget returns the log of a part of the pacer: that of the named share, or with "" that of all others. It is a
// log of its own, so a pacer without shares is asked as ever.
func (p *Pacer) partTarget(kind, share string, limits []Limit) Target {
	sum := sha256.Sum256([]byte(kind + "\n" + share))
	return Target{Pacer: p.Name, Message: hex.EncodeToString(sum[:8]), Group: p.Group, Limits: limits}
}

// own returns the target of a share's own part.
func (p *Pacer) own(share int) Target {
	var limits []Limit
	for _, k := range p.divided() {
		limits = append(limits, Limit{k.parts[share], k.Window})
	}
	return p.partTarget("share", p.Shares[share].Name, limits)
}

// rest returns the target of what the shares leave, and false when they leave all: no share is asked for, and no limit
// keeps its parts at all times.
func (p *Pacer) rest(asked func(share int) bool) (t Target, keeps bool) {
	var limits []Limit
	for _, k := range p.divided() {
		left := k.Max
		for share, part := range k.parts {
			if !k.soon || asked(share) {
				left -= part
				keeps = true
			}
		}
		limits = append(limits, Limit{max(1, left), k.Window})
	}
	return p.partTarget("share", "", limits), keeps
}

// demands knows which shares, or reaches, are asked for. An instance knows its own calls at once. It tells the others
// by a permit of the share's mark, a log of which nobody needs the slots.
type demands struct {
	mu     sync.Mutex
	asked  map[demand]time.Time // until when the share is asked for, by calls of this instance or as it has read
	marked map[demand]time.Time // when this instance took a permit of the mark
	read   map[string]time.Time // by pacer: when this instance read the marks
}

// demand identifies a share or a reach.
type demand struct{ pacer, share string }

// How often an instance marks a share that is asked for, and how often it reads the marks of a pacer.
const (
	markEvery = time.Second
	readEvery = 250 * time.Millisecond
)

func newDemands() *demands {
	return &demands{asked: map[demand]time.Time{}, marked: map[demand]time.Time{}, read: map[string]time.Time{}}
}

// is reports whether the share is asked for.
func (d *demands) is(pacer, share string, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.asked[demand{pacer, share}].After(now)
}

// ask notes a call of the share, and reports whether to mark the share.
func (d *demands) ask(pacer, share string, now time.Time) (mark bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := demand{pacer, share}
	d.asked[key] = now.Add(KeptFor)
	if mark = now.Sub(d.marked[key]) >= markEvery; mark {
		d.marked[key] = now
	}
	return mark
}

// due reports whether to read the marks of the pacer.
func (d *demands) due(pacer string, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	due := now.Sub(d.read[pacer]) >= readEvery
	if due {
		d.read[pacer] = now
	}
	return due
}

// see notes a share whose mark is so old.
func (d *demands) see(pacer, share string, until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if key := (demand{pacer, share}); until.After(d.asked[key]) {
		d.asked[key] = until
	}
}

// forget drops what is known, but for the demands that stay.
func (d *demands) forget(stays func(pacer, share string) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.read)
	for key := range d.asked {
		if !stays(key.pacer, key.share) {
			delete(d.asked, key)
			delete(d.marked, key)
		}
	}
}

// mark returns the target of a share's mark.
func (p *Pacer) mark(share int, window time.Duration) Target {
	return p.partTarget("mark", p.Shares[share].Name, []Limit{{1, window}})
}

// learn marks the shares of this call as requested, and reads which shares of its other pacers are requested.
func (p *Pacers) learn(ctx context.Context, plan *plan) error {
	now := p.clock()
	for i := range plan.answer.Pacers {
		pacer := &plan.answer.Pacers[i]
		own := plan.shares[i]
		if len(pacer.Shares) == 0 {
			continue
		}
		if own >= 0 && plan.base.Permits > 0 && p.demands.ask(pacer.Name, pacer.Shares[own].Name, now) {
			mark := &Ask{Permits: 1, Targets: []Target{pacer.mark(own, markEvery)}}
			if _, err := p.store.TakePermits(ctx, mark); err != nil {
				return err
			}
		}
		if (own < 0 || len(pacer.Shares) > 1) && p.demands.due(pacer.Name, now) {
			if err := p.readMarks(ctx, pacer, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// readMarks reads which shares of the pacer are asked for.
func (p *Pacers) readMarks(ctx context.Context, pacer *Pacer, now time.Time) error {
	look := &Ask{}
	for share := range pacer.Shares {
		look.Targets = append(look.Targets, pacer.mark(share, KeptFor))
	}
	grant, err := p.store.TakePermits(ctx, look)
	if err != nil {
		return err
	}
	for share := range pacer.Shares { // the next permit of the mark tells how old the newest one is
		p.demands.see(pacer.Name, pacer.Shares[share].Name, now.Add(grant.States[share].Next))
	}
	return nil
}
