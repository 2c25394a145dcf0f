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

// These constants limit the shares (reserved parts) of a pacer.
const (
	MaxShares = 8
	// KeptFor is the time for which a share stays in use after the latest call of the share. While a share is in use,
	// its part of a rate, and of a limit with a short window, is reserved.
	KeptFor = 5 * time.Second
	// SoonWindow is the longest window of a limit whose reserved part other calls may use while the share is idle. In a
	// limit with a longer window, the part stays reserved at all times, because permits that other calls took would
	// come back too late.
	SoonWindow = 2 * time.Second
	// RestAhead is the longest wait for a slot that a pacer with shares grants to a call without a share. With a slow
	// rate, this wait is longer; see Pacer.restAhead.
	RestAhead = 500 * time.Millisecond
)

// The type "kept" is a limit of a pacer, together with the part of Max that is reserved for each share.
type kept struct {
	Limit
	parts []int // by share: the reserved part of Max
	soon  bool  // true if other calls may use the part of an idle share
}

// leastPeriod is the shortest period over which a pacer's rate is divided between the shares (reserved parts of the
// pacer). Calls without a share get a series of slots in each period. With shorter periods, a log would need more
// series of slots than it can hold.
const leastPeriod = 50 * time.Millisecond

// The method "divided" returns the pacer's limits, and for each limit the parts that are reserved for the shares. A
// rate becomes a limit over a whole number of its intervals, because other calls must leave whole intervals to a share.
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

// The function "divide" divides a rate into the smallest number of equal parts with which every share gets a whole
// number of parts. The first element of the returned list is the number of equal parts. The next elements are the
// numbers of parts that the shares get. A share may get up to one percentage point more of the rate than the configured
// percentage. If all shares together have less than 100 percent, at least one part is left for other calls. Shares of
// more than 100 percent occur only in an invalid configuration.
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

// restAhead returns the longest wait for a slot that the pacer grants to a call without a share (reserved part of a
// pacer). The result of restAhead is RestAhead, or two intervals of a slow rate, but at most the pacer's LongestWait.
// The longest wait is short, because an idle share that comes into use gets its part only after the slots that calls
// without a share already have.
func (p *Pacer) restAhead() time.Duration {
	ahead := RestAhead
	if p.Rate.Permits > 0 {
		ahead = max(ahead, 2*p.Rate.Interval())
	}
	return min(ahead, p.LongestWait())
}

// ownAhead returns the longest wait for a slot in the first step of a call of a share (reserved part of a pacer). In
// the first step, a call of a share asks for slots of the share's part. In the second step, a call of a share asks for
// slots that other calls leave.
func (p *Pacer) ownAhead() time.Duration { return max(leastPeriod, p.Period()) }

// The method "share" returns the index of the share (reserved part of a pacer) with the given name in the pacer's list
// of shares, or -1.
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

// partTarget returns a target with a further log of the pacer, beside the log of the whole pacer. A log of the kind
// "share" is for the calls of the named share (reserved part of the pacer). A log with the name "" is for calls without
// a share. Logs of other kinds are marks and the far log.
func (p *Pacer) partTarget(kind, share string, limits []Limit) Target {
	sum := sha256.Sum256([]byte(kind + "\n" + share))
	return Target{Pacer: p.Name, Message: hex.EncodeToString(sum[:8]), Group: p.Group, Limits: limits}
}

// The method "own" returns the target (log with limits) for the reserved part of one share.
func (p *Pacer) own(share int) Target {
	var limits []Limit
	for _, k := range p.divided() {
		limits = append(limits, Limit{k.parts[share], k.Window})
	}
	return p.partTarget("share", p.Shares[share].Name, limits)
}

// The method "rest" returns the target (log with limits) for calls that name no share. Each limit of this target is the
// pacer's limit minus the parts that are reserved for shares now, but at least 1. The part of an idle share is reserved
// only in limits with a window longer than SoonWindow. If all shares are idle and no limit reserves the parts of idle
// shares, no part is subtracted, and the result "keeps" of the method "rest" is false.
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

// The method "shut" reports whether shares reserve 100 percent of the pacer, so that calls without a share get no
// permits. The argument "asked" of shut is a function that returns the remaining time for which a share is in use. The
// result "opens" of the method "shut" is the time until a share is idle, or the window of a limit that reserves all
// permits at all times.
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

// The type "demands" remembers which shares (reserved parts) and protected waits (wait classes with slots kept free)
// calls at any instance have used lately. To tell other instances that a share is in use, an instance takes a permit
// from a log that has no other purpose. Other instances read the log to learn that the share is in use.
type demands struct {
	mu     sync.Mutex
	asked  map[demand]time.Time // the end of use, by calls at this instance or by marks
	marked map[demand]time.Time // when this instance last stored a mark for the others
	read   map[string]time.Time // by pacer: when this instance last read the marks
}

// The type "demand" is a map key that identifies a share (reserved part of a pacer) or a protected wait of a pacer.
type demand struct{ pacer, share string }

// If calls use a share (reserved part of a pacer), an instance stores a mark once every markEvery. The mark tells other
// instances that calls use the share. An instance reads the marks of other instances at most once every readEvery.
const (
	markEvery = time.Second
	readEvery = 250 * time.Millisecond
)

func newDemands() *demands {
	return &demands{asked: map[demand]time.Time{}, marked: map[demand]time.Time{}, read: map[string]time.Time{}}
}

// The method "is" reports whether a call has named the share (reserved part) of the pacer within the last few seconds
// (KeptFor).
func (d *demands) is(pacer, share string, now time.Time) bool { return d.left(pacer, share, now) > 0 }

// The method "left" returns the remaining time for which the share (reserved part) of the pacer is in use. For an idle
// share, the result is at most 0.
func (d *demands) left(pacer, share string, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.asked[demand{pacer, share}].Sub(now)
}

// The method "ask" records that a call named the share, and reports whether the instance must now tell other instances
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

// The method "due" reports whether the instance must now read the marks of the pacer. Other instances store marks to
// tell this instance that shares are in use.
func (d *demands) due(pacer string, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	due := now.Sub(d.read[pacer]) >= readEvery
	if due {
		d.read[pacer] = now
	}
	return due
}

// The method "see" records that a share of the pacer is in use until the given time.
func (d *demands) see(pacer, share string, until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if key := (demand{pacer, share}); until.After(d.asked[key]) {
		d.asked[key] = until
	}
}

// The method "forget" removes data about shares and protected waits (wait classes with slots kept free). The function
// in the argument "stays" returns false for data to remove.
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

// The method "mark" returns the target of a share's mark. A mark is a log for signals between instances: a permit in
// the log says that the share (reserved part of a pacer) is in use.
func (p *Pacer) mark(share int, window time.Duration) Target {
	return p.partTarget("mark", p.Shares[share].Name, []Limit{{1, window}})
}

// The method "learn" tells other instances about the shares of this call, and reads from the store the other shares in
// use at the call's pacers.
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

// readMarks reads from the store the shares of the pacer that calls at other instances use.
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
