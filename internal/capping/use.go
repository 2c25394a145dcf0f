package capping

import (
	"cmp"
	"maps"
	"slices"
)

// The type Uses counts users, for each limit, by their number of counted sends. A Uses does not decide real sends. The
// Basis of Uses replaces each limit by shadow limits (limits that deny nobody), one for each number of sends to count.
// The Basis of Uses withholds no send.
type Uses struct {
	basis   *Basis
	channel Channel
	counts  map[useKey]*useCount
}

// useKey is a map key: the code of a segment, and the set of shadow limits (limits that deny nobody) that would have
// denied the send.
type useKey struct {
	code   uint8
	shadow uint32
}

type useCount struct {
	segment string
	limits  []*Limit // the limits that the bits of shadow mean; nil without a bit
	users   int
}

// A Use holds statistics for one limit of a segment: the number of users for each number of counted sends.
type Use struct {
	Segment string // "": users in no segment
	Limit   Limit
	Steps   []UseStep
}

// UseStep is the number of users who have at least Sends counted sends for a limit, but fewer than the Sends of the
// next step.
type UseStep struct{ Sends, Users int }

// NewUses returns a Uses that has not counted users yet. The returned Uses counts users for each limit of the basis
// that applies to the channel.
func NewUses(b *Basis, channel Channel) *Uses {
	p := b.Policy()
	counting := &Policy{Version: p.Version, Channels: p.Channels, Zone: p.Zone, Default: countingLimits(p.Default),
		Segments: map[string][]Limit{}}
	for segment, limits := range p.Segments {
		counting.Segments[segment] = countingLimits(limits)
	}
	return &Uses{basis: &Basis{b.segments, newInForce(counting)}, channel: channel, counts: map[useKey]*useCount{}}
}

// mostSteps is the maximum number of UseSteps (counts of users by number of sends) for one limit. The step for users
// without sends does not count for the maximum mostSteps.
const mostSteps = 6

// countingLimits returns shadow limits (limits that deny nobody) for each limit that denies. The shadow limits count
// the sends of each user.
func countingLimits(limits []Limit) (counting []Limit) {
	denying := slices.DeleteFunc(slices.Clone(limits), func(l Limit) bool { return l.Shadow || l.Max == 0 })
	if len(denying) == 0 {
		return nil
	}
	denying = denying[:min(len(denying), MaxShadow)]
	room := min(mostSteps, MaxShadow/len(denying))
	for _, l := range denying {
		most := l.Max
		l.Shadow = true
		for l.Max = 1; l.Max < min(most, room); l.Max++ {
			counting = append(counting, l)
		}
		l.Max = most
		counting = append(counting, l)
	}
	return counting
}

// Basis returns a Basis whose limits only count sends, for the caller's decisions. Callers must decide the users with
// the returned Basis before they call the method Add.
func (u *Uses) Basis() *Basis { return u.basis }

// The method Add counts the users of the given decisions, which must have been made with the Basis of u. The method Add
// leaves out users without a decision.
func (u *Uses) Add(d *Decisions) {
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		if v.Outcome != Allowed {
			continue
		}
		key := useKey{d.Codes[i], v.Shadow}
		count := u.counts[key]
		if count == nil {
			count = &useCount{limits: d.ShadowLimits(i)}
			if key.code > 0 {
				count.segment = d.Names[key.code-1]
			}
			u.counts[key] = count
		}
		count.users++
	}
}

// The method All returns the counts by segment and limit, sorted by segment; limits have the order of the policy.
func (u *Uses) All() (list []Use) {
	bySegment := map[string][]*useCount{}
	masks := map[*useCount]uint32{}
	for key, count := range u.counts {
		bySegment[count.segment] = append(bySegment[count.segment], count)
		masks[count] = key.shadow
	}
	for _, segment := range slices.Sorted(maps.Keys(bySegment)) {
		reached, users := map[useStepKey]int{}, 0
		for _, count := range bySegment[segment] {
			users += count.users
			for k, limit := range count.limits {
				if k < MaxShadow && masks[count]>>k&1 == 1 {
					reached[useStepKey{limit.Name, limit.Max}] += count.users
				}
			}
		}
		list = append(list, u.of(segment, users, reached)...)
	}
	return list
}

// useStepKey is a limit with a number of sends.
type useStepKey struct {
	limit string
	sends int
}

// The method "of" returns a Use for each limit of a segment. The argument "reached" of the method "of" holds, for each
// limit and each number n, a count of users: those with at least n sends.
func (u *Uses) of(segment string, users int, reached map[useStepKey]int) (list []Use) {
	for _, l := range u.basis.Policy().Limits(segment) {
		if !l.AppliesTo(u.channel) {
			continue
		}
		if n := len(list); n == 0 || list[n-1].Limit.Name != l.Name {
			list = append(list, Use{Segment: segment, Limit: l, Steps: []UseStep{{0, users}}})
		}
		use := &list[len(list)-1]
		use.Limit.Max = cmp.Or(l.Max, use.Limit.Max)
		last := &use.Steps[len(use.Steps)-1]
		here := reached[useStepKey{l.Name, l.Max}]
		last.Users -= here
		use.Steps = append(use.Steps, UseStep{l.Max, here})
	}
	for i := range list {
		list[i].Limit.Shadow = false
	}
	return list
}
