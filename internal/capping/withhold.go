package capping

import (
	"time"

	"capper/internal/quiet"
)

// Marks of users from whom a send is withheld before their log is looked at: the
// index of the policy's suppression plus 1, or one of these. 0: nothing withholds it.
const (
	markHoldout = 255 - iota
	markQuiet
)

// withholding is what keeps a send from users, whatever they have received: the
// sets that are suppressed, the holdout and quiet hours. The zero value keeps it
// from nobody.
type withholding struct {
	suppressed []suppressed
	holdout    *Holdout
	quiet      *nights
}

// suppressed is a set whose users the send is not for.
type suppressed struct {
	set  Set
	mark uint8
}

// newWithholding finds what applies to the send now. The error is that a set is
// missing in the generation, or too old: then nobody may be sent to.
func newWithholding(policy *Policy, segments Segments, send *Send, now time.Time) (w withholding, err error) {
	var lacking, old []string
	find := func(name string) Set {
		set, ok := segments.Set(name)
		if !ok {
			lacking = append(lacking, name)
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
	case len(old) > 0:
		return withholding{}, tooOldError(segments.Generation(), old)
	}
	return w, nil
}

// apply marks and denies the users from whom the send is withheld at now.
func (w *withholding) apply(d *Decisions, now Instant) {
	if w.suppressed == nil && w.holdout == nil && w.quiet == nil {
		return
	}
	marks := make([]uint8, len(d.Users))
	for _, s := range w.suppressed {
		s.set.Mark(d.Users, marks, s.mark)
	}
	if w.holdout != nil {
		w.holdout.Share.Mark(d.Users, marks, markHoldout)
	}
	if w.quiet != nil {
		w.quiet.begin(d, now)
		w.quiet.mark(marks)
	}
	w.deny(d, marks)
}

// deny sorts the marked users from the others, without a branch that depends on who they
// are, and denies them.
func (w *withholding) deny(d *Decisions, marks []uint8) {
	order := make([]int32, len(marks)+1)
	kept, last := 0, len(marks)
	for i, mark := range marks { // those who are kept from the front on, the others from behind
		order[kept], order[last] = int32(i), int32(i)
		held := int(mark|-mark) >> 7 // 1 where the mark is not 0
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

// postpone moves what frees a slot in quiet hours to their end.
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

// nights is the quiet hours that apply to a send.
type nights struct {
	hours []*Quiet
	index []uint8 // of each in the policy
	sets  [][]Set // of each: users in any of these only; nil: everybody

	now    Instant
	zones  []uint16         // by user, an index into places; nil: 0 for everybody
	places []*time.Location // time zones
	masks  []uint16         // by user, a bit for each hours that are theirs; nil: all are everybody's
	zoned  []*night         // by zone, where all hours are everybody's; nil: not known yet
	masked map[uint32]*night
}

// night is the quiet hours of the users of one zone whose hours are the same.
type night struct {
	mark     uint8   // markQuiet: it is quiet at the instant of the call; else 0
	by       uint8   // quiet: the hours that are on, by their index in the policy
	until    Instant // quiet: the opening
	clocks   []quiet.Clock
	timeline *quiet.Timeline // nil: nobody has asked for it
}

// newNights finds the quiet hours of sends on the channel; nil: there are none.
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

// begin looks up which hours are whose.
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
			set.Mark(d.Users, member, 1)
		}
		for i, in := range member {
			n.masks[i] |= everybody | uint16(in)<<k
		}
	}
}

// mark marks the users of whom it is quiet.
func (n *nights) mark(marks []uint8) {
	for i := range marks {
		if marks[i] == 0 {
			marks[i] = n.of(i).mark
		}
	}
}

// of is the night of user i.
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

// night is that of users of a zone, with the hours of the mask.
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

// opens is the first instant from at on at which it is not quiet.
func (n *night) opens(at Instant) Instant {
	if n.timeline == nil {
		n.timeline = quiet.NewTimeline(n.clocks)
	}
	return openingOf(n.timeline.Opens(at.Time()))
}

// quietAt tells whether it is quiet by any of the clocks, by the first of which, and until when.
func quietAt(clocks []quiet.Clock, now Instant) (on bool, by int, until Instant) {
	piece := quiet.At(clocks, now.Time())
	if !piece.On {
		return false, 0, 0
	}
	return true, piece.By, openingOf(piece.Until)
}

// openingOf is the instant of an opening, Never where there is none.
func openingOf(t time.Time) Instant {
	if t.IsZero() {
		return Never
	}
	return min(InstantOf(t), Never)
}
