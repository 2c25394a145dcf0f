package capping

import (
	"slices"
	"time"

	"capper/internal/quiet"
	"capper/internal/share"
)

// These constants are values of a user's mark: the reason to withhold a send from the user before the store reads the
// log. A mark is one of the constants below, or the index of a suppression in the policy plus 1. The mark 0 means that
// nothing withholds the send from the user.
const (
	markHoldout = 255 - iota
	markQuiet
)

// The type "withholding" holds the reasons to withhold a send from users before limits apply: suppressed sets, the
// holdout (share of users who get no messages) and quiet hours. The zero value of the type "withholding" withholds
// nothing.
type withholding struct {
	suppressed []suppressed
	holdout    *Holdout
	quiet      *nights
}

// The type "suppressed" is a set of users who must not receive the send.
type suppressed struct {
	set  Set
	mark uint8
}

// newWithholding returns the suppressed sets, the holdout and the quiet hours that apply to the send now. The function
// newWithholding returns an error if the generation (published version) of segments lacks one of the sets, or if a set
// is too old. After an error of newWithholding, no user may receive the send.
func newWithholding(policy *Policy, segments Segments, send *Send, now time.Time) (w withholding, err error) {
	var lacking, old, outrun []string
	find := func(name string) Set {
		set, ok := segments.Set(name)
		switch {
		case !ok:
			lacking = append(lacking, name)
		case behind(segments, name):
			outrun = append(outrun, name)
		}
		return set
	}
	for i := range policy.Suppress {
		if s := &policy.Suppress[i]; s.Channels.Has(send.Channel) && (send.Enforce || s.EvenExempt) {
			w.suppressed = append(w.suppressed, suppressed{find(s.Set), uint8(i + 1)})
			if s.tooOld(segments, now) {
				old = append(old, s.Set)
			}
		}
	}
	if send.Enforce {
		if h := policy.Holdout; h != nil && h.Channels.Has(send.Channel) {
			w.holdout = h
		}
		w.quiet = newNights(policy, send.Channel, find)
	}
	switch {
	case len(lacking) > 0:
		return withholding{}, missing(segments.Generation(), lacking)
	case len(outrun) > 0:
		return withholding{}, behindError(segments.Generation(), outrun)
	case len(old) > 0:
		return withholding{}, tooOldError(segments.Generation(), old)
	}
	return w, nil
}

// bySets reports whether suppression or quiet hours withhold the send from users because of their sets.
func (w *withholding) bySets() bool {
	return len(w.suppressed) > 0 || w.quiet != nil && slices.ContainsFunc(w.quiet.sets,
		func(s []Set) bool { return s != nil })
}

// The method "apply" sets the verdict Denied for every user from whom suppression, the holdout or quiet hours withhold
// the send now.
func (w *withholding) apply(d *Decisions, now Instant) {
	if w.suppressed == nil && w.holdout == nil && w.quiet == nil {
		return
	}
	marks := make([]uint8, len(d.Users))
	for _, s := range w.suppressed {
		s.set.Mark(d.Users, d.numbers, marks, s.mark)
	}
	if w.holdout != nil {
		share.Mark(&w.holdout.Share, d.Users, marks, markHoldout)
	}
	if w.quiet != nil {
		w.quiet.begin(d, now)
		w.quiet.mark(marks)
	}
	w.deny(d, marks)
}

// The method "deny" sets the verdict Denied for the users whose mark is not 0. The method "deny" separates users with
// and without a mark, without a branch that depends on the marks.
func (w *withholding) deny(d *Decisions, marks []uint8) {
	order := make([]int32, len(marks)+1)
	kept, last := 0, len(marks)
	for i, mark := range marks { // unmarked users go to the start, marked users to the end
		order[kept], order[last] = int32(i), int32(i)
		held := int(mark|-mark) >> 7 // 1 when the mark is not 0
		kept, last = kept+1-held, last-held
	}
	d.kept, d.withheld = order[:kept], kept < len(marks)
	for _, i := range order[last+1:] {
		switch mark := marks[i]; mark {
		case markHoldout:
			d.Verdicts[i] = Verdict{Outcome: Denied, By: ByHoldout, FreesAt: Never}
		case markQuiet:
			night := w.quiet.of(int(i))
			d.Verdicts[i] = Verdict{Outcome: Denied, By: ByQuiet, Rule: night.by, FreesAt: night.until}
		default:
			d.Verdicts[i] = Verdict{Outcome: Denied, By: BySuppression, Rule: mark - 1, FreesAt: Never}
		}
	}
}

// The method "postpone" corrects denials by limits whose slots become free during quiet hours: FreesAt becomes the end
// of the quiet hours.
func (w *withholding) postpone(d *Decisions) {
	if w.quiet == nil {
		return
	}
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		if v.Outcome == Denied && v.By == ByLimit && v.FreesAt < Never {
			v.FreesAt = w.quiet.of(i).opens(v.FreesAt)
		}
	}
}

// The type "nights" holds the quiet hours that apply to a send.
type nights struct {
	hours []*Quiet
	index []uint8 // by quiet hours: their index in the policy
	sets  [][]Set // by quiet hours: the sets whose users have these hours; nil: every user

	now    Instant
	zones  []uint16         // by user, an index into places; nil: 0 for every user
	places []*time.Location // time zones
	masks  []uint16         // by user, a bit for each entry of hours that applies; nil: all apply to every user
	zoned  []*night         // by zone, if all quiet hours apply to every user; nil: not computed yet
	masked map[uint32]*night
}

// A night holds the quiet hours of a group of users: they have the same time zone, and the same entries of quiet hours
// apply to them.
type night struct {
	mark     uint8   // markQuiet when quiet hours are on at the instant of the call; otherwise 0
	by       uint8   // when quiet hours are on: their index in the policy
	until    Instant // when quiet hours are on: the end of the quiet hours
	clocks   []quiet.Clock
	timeline *quiet.Timeline // nil: not used yet
}

// newNights returns the quiet hours for sends on the channel, or nil when the policy has no quiet hours for the
// channel.
func newNights(policy *Policy, channel Channel, find func(string) Set) *nights {
	var n *nights
	for i := range policy.Quiet {
		hours := &policy.Quiet[i]
		if !hours.Channels.Has(channel) {
			continue
		}
		if n == nil {
			n = &nights{}
		}
		var sets []Set
		for _, name := range hours.Sets {
			sets = append(sets, find(name))
		}
		n.hours, n.index, n.sets = append(n.hours, hours), append(n.index, uint8(i)), append(n.sets, sets)
	}
	return n
}

// The method "begin" computes, for each user of the call, the quiet hours that apply.
func (n *nights) begin(d *Decisions, now Instant) {
	n.now, n.zones, n.places = now, d.zones, d.places
	everybody := uint16(0)
	for k, sets := range n.sets {
		if sets == nil {
			everybody |= 1 << k
		}
	}
	if everybody == 1<<len(n.hours)-1 {
		n.zoned = make([]*night, max(len(d.places), 1))
		return
	}
	n.masks, n.masked = make([]uint16, len(d.Users)), map[uint32]*night{}
	member := make([]uint8, len(d.Users))
	for k, sets := range n.sets {
		clear(member)
		for _, set := range sets {
			set.Mark(d.Users, d.numbers, member, 1)
		}
		for i, in := range member {
			n.masks[i] |= everybody | uint16(in)<<k
		}
	}
}

// The method "mark" sets the mark markQuiet for each user who has quiet hours now and has no mark yet.
func (n *nights) mark(marks []uint8) {
	for i := range marks {
		if marks[i] == 0 {
			marks[i] = n.of(i).mark
		}
	}
}

func (n *nights) of(i int) *night {
	zone := uint16(0)
	if n.zones != nil {
		zone = n.zones[i]
	}
	if n.masks == nil {
		if n.zoned[zone] == nil {
			n.zoned[zone] = n.night(zone, 1<<len(n.hours)-1)
		}
		return n.zoned[zone]
	}
	key := uint32(zone)<<16 | uint32(n.masks[i])
	found := n.masked[key]
	if found == nil {
		found = n.night(zone, n.masks[i])
		n.masked[key] = found
	}
	return found
}

// The method "night" returns the quiet hours of the users in the given time zone to whom the entries in the bit mask
// apply.
func (n *nights) night(zone, mask uint16) *night {
	var clocks []quiet.Clock
	var index []uint8
	for k, hours := range n.hours {
		if mask>>k&1 == 0 {
			continue
		}
		location := time.UTC
		if n.zones != nil {
			location = n.places[zone]
		}
		clocks, index = append(clocks, quiet.Clock{Hours: hours.Hours, Location: hours.in(location)}),
			append(index, n.index[k])
	}
	found := &night{clocks: clocks}
	if on, by, until := quietAt(clocks, n.now); on {
		found.mark, found.by, found.until = markQuiet, index[by], until
	}
	return found
}

// The method "opens" returns the first instant, at or after the given instant, at which the user has no quiet hours.
func (n *night) opens(at Instant) Instant {
	if n.timeline == nil {
		n.timeline = quiet.NewTimeline(n.clocks)
	}
	return openingOf(n.timeline.Opens(at.Time()))
}

// quietAt reports whether quiet hours are on. The result "by" of quietAt is the index of the first element of "clocks"
// whose quiet hours are on. The result "until" of quietAt is the first instant at which no quiet hours are on any more.
func quietAt(clocks []quiet.Clock, now Instant) (on bool, by int, until Instant) {
	piece := quiet.At(clocks, now.Time())
	if !piece.On {
		return false, 0, 0
	}
	return true, piece.By, openingOf(piece.Until)
}

// openingOf converts the time at which quiet hours end to an Instant; the zero time (no end) becomes Never.
func openingOf(t time.Time) Instant {
	if t.IsZero() {
		return Never
	}
	return min(InstantOf(t), Never)
}
