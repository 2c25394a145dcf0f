package capping

import (
	"cmp"
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
// sets that are suppressed, the holdout and quiet hours.
type withholding struct {
	policy  *Policy
	send    *Send
	sets    []Set // of the policy's suppressions, by index; nil: it does not apply to the send
	clocks  quietClocks
	holdout *Holdout
}

// newWithholding finds what applies to the send. The error is that a set is
// missing in the generation: then nobody may be sent to.
func newWithholding(policy *Policy, segments Segments, send *Send) (*withholding, error) {
	w := &withholding{policy: policy, send: send, sets: make([]Set, len(policy.Suppress))}
	var lacking []string
	find := func(name string) Set {
		set, ok := segments.Set(name)
		if !ok {
			lacking = append(lacking, name)
		}
		return set
	}
	for i := range policy.Suppress {
		if s := &policy.Suppress[i]; s.Channels.Has(send.Channel) && (send.Enforce || s.EvenExempt) {
			w.sets[i] = find(s.Set)
		}
	}
	if send.Enforce {
		if h := policy.Holdout; h != nil && h.Channels.Has(send.Channel) {
			w.holdout = h
		}
		w.clocks.find(policy, send.Channel, find)
	}
	if len(lacking) > 0 {
		return nil, missing(segments.Generation(), lacking)
	}
	return w, nil
}

// apply marks and denies the users from whom the send is withheld at now.
func (w *withholding) apply(d *Decisions, now Instant) {
	marks := make([]uint8, len(d.Users))
	for i, set := range w.sets {
		if set != nil {
			set.Mark(d.Users, marks, uint8(i+1))
		}
	}
	w.clocks.begin(d)
	held := 0
	for i, user := range d.Users {
		if marks[i] == 0 && w.holdout != nil && w.holdout.Share.Has(user) {
			marks[i] = markHoldout
		}
		switch mark := marks[i]; mark {
		case markHoldout:
			d.Verdicts[i] = Verdict{Outcome: Denied, By: ByHoldout, FreesAt: Never}
		case 0:
			if piece := w.clocks.at(i, now); piece.on {
				marks[i] = markQuiet
				d.Verdicts[i] = Verdict{Outcome: Denied, By: ByQuiet, Rule: piece.by, FreesAt: piece.until}
			}
		default:
			d.Verdicts[i] = Verdict{Outcome: Denied, By: BySuppression, Rule: mark - 1, FreesAt: Never}
		}
		if marks[i] != 0 {
			held++
		}
	}
	if held > 0 {
		d.marks = marks
	}
}

// postpone moves what frees a slot in quiet hours to their end.
func (w *withholding) postpone(d *Decisions) {
	if len(w.clocks.all) == 0 {
		return
	}
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		if v.Outcome != Denied || v.By != ByLimit || v.FreesAt >= Never {
			continue
		}
		if piece := w.clocks.at(i, v.FreesAt); piece.on {
			v.FreesAt = piece.until
		}
	}
}

// quietClocks is the quiet hours that apply to a send.
type quietClocks struct {
	all     []Quiet
	index   []uint8 // of each in the policy
	sets    [][]Set // of each: users in any of these only; nil: everybody
	members [][]uint8
	d       *Decisions
	pieces  map[uint32][]quietPiece // by time zone and which of them apply
}

// quietPiece is a quiet.Piece in instants.
type quietPiece struct {
	on          bool
	by          uint8
	from, until Instant
}

func (q *quietClocks) find(policy *Policy, channel Channel, find func(string) Set) {
	for i := range policy.Quiet {
		hours := policy.Quiet[i]
		if !hours.Channels.Has(channel) {
			continue
		}
		var sets []Set
		for _, name := range hours.Sets {
			sets = append(sets, find(name))
		}
		q.all, q.index, q.sets = append(q.all, hours), append(q.index, uint8(i)), append(q.sets, sets)
	}
}

// begin looks the users of d up in the sets of the hours.
func (q *quietClocks) begin(d *Decisions) {
	q.d, q.pieces = d, map[uint32][]quietPiece{}
	q.members = make([][]uint8, len(q.all))
	for k, sets := range q.sets {
		if sets == nil {
			continue
		}
		q.members[k] = make([]uint8, len(d.Users))
		for _, set := range sets {
			set.Mark(d.Users, q.members[k], 1)
		}
	}
}

// at is the piece of time that the instant is in, for user i.
func (q *quietClocks) at(i int, at Instant) quietPiece {
	if len(q.all) == 0 {
		return quietPiece{}
	}
	zone, apply := uint16(0), uint16(0)
	if q.d.zones != nil {
		zone = q.d.zones[i]
	}
	for k := range q.all {
		if q.members[k] == nil || q.members[k][i] != 0 {
			apply |= 1 << k
		}
	}
	key := uint32(zone)<<16 | uint32(apply)
	for _, piece := range q.pieces[key] {
		if at >= piece.from && at < piece.until {
			return piece
		}
	}
	piece := q.piece(zone, apply, at)
	q.pieces[key] = append(q.pieces[key], piece)
	return piece
}

// piece works out the piece of time from an instant on.
func (q *quietClocks) piece(zone, apply uint16, at Instant) quietPiece {
	var clocks []quiet.Clock
	var index []uint8
	for k := range q.all {
		if apply>>k&1 == 0 {
			continue
		}
		location := cmp.Or(q.all[k].Location, time.UTC)
		if q.all[k].UserZone {
			location = q.d.places[zone]
		}
		clocks, index = append(clocks, quiet.Clock{Hours: q.all[k].Hours, Location: location}), append(index, q.index[k])
	}
	if len(clocks) == 0 {
		return quietPiece{from: at, until: Never}
	}
	found := quiet.At(clocks, at.Time())
	piece := quietPiece{on: found.On, from: at, until: Never}
	if found.On {
		piece.by = index[found.By]
	}
	if !found.Until.IsZero() {
		piece.until = InstantOf(found.Until)
	}
	return piece
}

// needsZones reports whether a send on the channel asks for users' time zones.
func (p *Policy) needsZones(channel Channel) bool {
	for i := range p.Quiet {
		if p.Quiet[i].UserZone && p.Quiet[i].Channels.Has(channel) {
			return true
		}
	}
	return p.limitsByZone(channel)
}

// limitsByZone reports whether limits of a send on the channel go by users' time zones.
func (p *Policy) limitsByZone(channel Channel) bool {
	if anyByZone(p.Default, channel) {
		return true
	}
	for _, limits := range p.Segments {
		if anyByZone(limits, channel) {
			return true
		}
	}
	return false
}

func anyByZone(limits []Limit, channel Channel) bool {
	for i := range limits {
		if limits[i].UserZone && limits[i].AppliesTo(channel) {
			return true
		}
	}
	return false
}
