package pacing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"
)

// Share is a percentage of a pacer's limits that is reserved for calls that name the share.
type Share struct {
	Name    string
	Percent int // of the rate and of each limit, 1 to 100
}

// The bounds of shares.
const (
	MaxShares = 8
	// KeptFor is the time after the latest call of a share for which its part of a rate or of a limit with a short
	// window stays reserved.
	KeptFor = 5 * time.Second
	// SoonWindow is the longest window of a limit whose reserved part other calls may use while the share is idle. A
	// limit with a longer window always keeps the reserved part, because permits that other calls took would come back
	// too late.
	SoonWindow = 2 * time.Second
	// RestAhead is the least time ahead up to which a pacer with shares grants slots to calls without a share; see
	// Pacer.restAhead.
	RestAhead = 500 * time.Millisecond
)

// kept is a limit of a pacer, together with the part of its Max that is reserved for each share.
type kept struct {
	Limit
	parts []int // by share: its part of Max
	soon  bool  // other calls may use the part of an idle share
}

// leastPeriod is the shortest time for which a pacer's rate is divided between its shares. Calls without a share
// (reserved part of a pacer) get a series of slots in each period of a rate. With shorter periods, there would be more
// such series than a log can hold.
const leastPeriod = 50 * time.Millisecond

// divided returns the pacer's limits, and for each limit the parts that are reserved for the shares. A rate becomes a
// limit over a whole number of its intervals, because other calls must leave whole intervals to a share.
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

// divide returns the smallest number of equal parts into which a rate can be divided, such that every share gets a
// whole number of parts. The first element of the list that divide returns is the number of equal parts. Then follows
// the number of parts of each share. A share may get up to one percentage point more of the rate than the configured
// percentage. If the shares have less than 100 percent together, they do not get all parts. Only a configuration with
// faults has shares of more than 100 percent.
func divide(shares []Share) (parts []int) {
	percent := 0
	for _, s := range shares {
		percent += s.Percent
	}
	for n := 1; ; n++ {
		left := n
		parts = append(parts[:0], n)
		for _, s := range shares {
			own := (s.Percent*n + 99) / 100
			if own*100 > (s.Percent+1)*n {
				break
			}
			parts, left = append(parts, own), left-own
		}
		if len(parts) > len(shares) && (left > 0 || left == 0 && percent == 100 || percent > 100) {
			return parts
		}
	}
}

// Period returns the time over which a rate is divided between shares, or 0 if the pacer has no rate.
func (p *Pacer) Period() time.Duration {
	if p.Rate.Permits == 0 {
		return 0
	}
	limits := p.divided()
	return limits[len(limits)-1].Window
}

// restAhead returns how far into the future the pacer grants slots to calls without a share (reserved part of a pacer).
// restAhead returns RestAhead, or two intervals of a slow rate, but not more than the pacer's LongestWait. A share that
// was idle gets its part of the pacer only after the slots that calls without a share have already got.
func (p *Pacer) restAhead() time.Duration {
	ahead := RestAhead
	if p.Rate.Permits > 0 {
		ahead = max(ahead, 2*p.Rate.Interval())
	}
	return min(ahead, p.LongestWait())
}

// ownAhead returns how far into the future a call of a share gets slots from the reserved part of this share. The call
// then tries slots that other calls leave.
func (p *Pacer) ownAhead() time.Duration { return max(leastPeriod, p.Period()) }

// share returns the index of the share (reserved part of a pacer) with the given name in the pacer's list of shares, or
// -1.
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

// HasShare reports whether the pacer has a share (reserved part of a pacer) with the given name.
func (p *Pacer) HasShare(name string) bool { return p.share(name) >= 0 }

// partTarget returns a target with a separate log for some calls of a pacer: the calls of the named share or, if share
// is "", all calls without a share (reserved part of a pacer). The log of the whole pacer does not change.
func (p *Pacer) partTarget(kind, share string, limits []Limit) Target {
	sum := sha256.Sum256([]byte(kind + "\n" + share))
	return Target{Pacer: p.Name, Message: hex.EncodeToString(sum[:8]), Group: p.Group, Limits: limits}
}

// own returns the target (log with limits) for the reserved part of one share.
func (p *Pacer) own(share int) Target {
	var limits []Limit
	for _, k := range p.divided() {
		limits = append(limits, Limit{k.parts[share], k.Window})
	}
	return p.partTarget("share", p.Shares[share].Name, limits)
}

// rest returns the target (log with limits) for calls that name no share. The limits of this target are the
// pacer's limits less the reserved parts of shares that are in use. The result "keeps" of the method rest is false if
// no part is subtracted, because every share is idle and no limit always reserves its parts.
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

// shut reports whether shares reserve 100 percent of the pacer, so that calls without a share get no permits. The
// argument "asked" is a function that returns for how long a share is in use. The result "opens" is the time until a
// share is idle, or the window of a limit that reserves all permits at all times.
func (p *Pacer) shut(asked func(share int) time.Duration) (opens time.Duration, is bool) {
	percent, used := 0, KeptFor
	for i := range p.Shares {
		percent, used = percent+p.Shares[i].Percent, min(used, asked(i))
	}
	if percent < 100 {
		return 0, false
	}
	for _, limit := range p.Limits {
		if limit.Window > SoonWindow {
			opens = max(opens, limit.Window)
		}
	}
	opens = max(opens, used)
	return opens, opens > 0
}

// demands remembers which shares or protected waits (waits for which other calls leave slots free) of pacers calls have
// used lately, at this instance or at others. To tell other instances that a share is in use, an instance takes a
// permit from a log that has no other purpose. Other instances read this log.
type demands struct {
	mu     sync.Mutex
	asked  map[demand]time.Time // until when it counts as in use, from own calls or marks
	marked map[demand]time.Time // when this instance last told the others
	read   map[string]time.Time // by pacer: when this instance last read the others' marks
}

// demand is a map key that identifies a share (reserved part of a pacer) or a protected wait of a pacer.
type demand struct{ pacer, share string }

// While calls use a share (reserved part of a pacer), an instance tells other instances so once every markEvery. An
// instance reads such marks of other instances once every readEvery.
const (
	markEvery = time.Second
	readEvery = 250 * time.Millisecond
)

func newDemands() *demands {
	return &demands{asked: map[demand]time.Time{}, marked: map[demand]time.Time{}, read: map[string]time.Time{}}
}

// is reports whether a call has named the share of the pacer within the last few seconds (KeptFor).
func (d *demands) is(pacer, share string, now time.Time) bool { return d.left(pacer, share, now) > 0 }

// left returns for how long the share of the pacer still counts as in use. For an idle share, the result is at most 0.
func (d *demands) left(pacer, share string, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.asked[demand{pacer, share}].Sub(now)
}

// ask records that a call named the share, and reports whether the instance must now tell other instances
// that the share is in use.
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

// due reports whether it is time to read from the store which shares of the pacer other instances use.
func (d *demands) due(pacer string, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	due := now.Sub(d.read[pacer]) >= readEvery
	if due {
		d.read[pacer] = now
	}
	return due
}

// see notes that a share of the pacer is in use until the given time.
func (d *demands) see(pacer, share string, until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if key := (demand{pacer, share}); until.After(d.asked[key]) {
		d.asked[key] = until
	}
}

// forget removes stored data about those shares and protected waits (waits for which other calls leave slots free) for
// which the function in the argument "stays" returns false.
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

// mark returns the target of the log that instances use only to tell each other that a share (reserved part of a pacer)
// is in use.
func (p *Pacer) mark(share int, window time.Duration) Target {
	return p.partTarget("mark", p.Shares[share].Name, []Limit{{1, window}})
}

// learn tells other instances which shares this call uses, and reads which other shares of the call's pacers are in
// use.
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

// readMarks reads from the store which shares of the pacer calls at other instances use.
func (p *Pacers) readMarks(ctx context.Context, pacer *Pacer, now time.Time) error {
	look := &Ask{}
	for share := range pacer.Shares {
		look.Targets = append(look.Targets, pacer.mark(share, KeptFor))
	}
	grant, err := p.store.TakePermits(ctx, look)
	if err != nil {
		return err
	}
	for share := range pacer.Shares { // the wait for the next permit shows the age of the newest mark
		p.demands.see(pacer.Name, pacer.Shares[share].Name, now.Add(grant.States[share].Next))
	}
	return nil
}
