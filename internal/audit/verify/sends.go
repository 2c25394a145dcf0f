package verify

import (
	"cmp"
	"slices"
	"time"

	"capper/internal/audit"
	"capper/internal/capping"
)

// The constant "never" is an instant that is later than every possible call.
const never = capping.Never + 1

// A call holds the data of a recorded call that verify needs for the check of sends against limits.
type call struct {
	from, to capping.Instant // bounds of the timestamps that the call recorded
	sequence uint64
	instance uint16
	policy   uint16 // index of a policy under which the call was judged
	world    uint16 // index of a segments generation; 0: unknown
	message  uint32 // index of the message; equal messages have equal indexes
	channel  capping.Channel
	exempt   bool
	slack    int32 // largest possible difference to the clocks of other instances, in ms
}

// A happening is the effect of a call on a user's send of the message: the call recorded the send, released the send,
// or found no send.
type happening uint8

const (
	sent     happening = iota // allowed and recorded
	gone                      // released, or possibly released
	absent                    // release requested, but the send was not in the log
	repeated                  // the store had the send of an earlier call (unrecorded.go)
)

// An event is the effect of one call on the sends of one user.
type event struct {
	call    uint32
	low     uint16 // lower half of a dense id
	zone    uint16 // code of the user's time zone
	segment uint8  // code of the user's segment
	what    happening
}

// The function "happens" returns the effect of a call on the sends of the users in one group of the call's audit
// record. If the outcome says nothing about the users' sends, the result "ok" is false.
func happens(g *audit.Group) (what happening, ok bool) {
	switch g.Outcome {
	case audit.Allowed:
		return sent, true
	case audit.Replayed:
		return repeated, true
	case audit.Released, audit.ReleaseUnavailable:
		return gone, true
	case audit.Absent:
		return absent, true
	}
	return 0, false
}

// A send is a recorded send of a user, with the data that verify needs for the check against limits.
type send struct {
	*call
	segment uint8
	zone    uint16
	gone    capping.Instant // time from which the send may be missing from the log
	// unrecorded means that the audit has no record of the send. The call is then the first that repeated the send.
	unrecorded bool
}

// sendsOf computes the sends of a user from the effects (events) of calls on this user. The argument "events" of
// sendsOf must hold all events of the user, in the order of time. The returned sends are also in the order of time.
func (t *table) sendsOf(events []event, sends []send) []send {
	sends = sends[:0]
	for i, e := range events {
		if e.what == sent || e.what == repeated && t.unrecorded(events, i) {
			sends = append(sends, send{&t.calls[e.call], e.segment, e.zone, never, e.what == repeated})
		}
	}
	for _, e := range events {
		if e.what == gone || e.what == absent {
			takeAway(sends, &t.calls[e.call], e.what)
		}
	}
	return sends
}

// takeAway finds the sends that a release may have removed from the user's log, and stores the earliest possible time
// of each removal.
func takeAway(sends []send, c *call, what happening) {
	for i := range sends {
		s := &sends[i]
		slack := capping.Instant(max(c.slack, s.slack))
		if s.from > c.to+slack {
			return
		}
		if s.message != c.message || c.channel != 0 && c.channel != s.channel || s.gone <= c.to {
			continue
		}
		if s.gone = c.from - slack; what == absent {
			s.gone = 0 // the time of the removal is unknown
		}
	}
}

// certainlyBefore reports whether the service certainly recorded the call a before it decided the call b: for every
// possible difference between the clocks of the two instances.
func certainlyBefore(a, b *call) bool {
	slack := capping.Instant(0)
	if a.instance != b.instance {
		slack = capping.Instant(max(a.slack, b.slack))
	}
	return a.to+slack < b.from
}

// A table holds the recorded calls that a pass of verify reads, with the policies and segments that decided these
// calls.
type table struct {
	calls     []call
	messages  map[messageKey]uint32
	texts     []messageKey // messages by number
	instances names
	policies  []policy
	worlds    []world
	unsure    []span
}

// A span is a time span in which audit records, such as records of releases, may be missing.
type span struct{ from, to capping.Instant }

// A call whose record is missing may have begun earlier than the latest recorded call, by at most longestCall
// milliseconds.
const longestCall = 5 * 60 * 1000

// unsureSince reports whether the record of a release may be missing between a send and the time "until".
func (t *table) unsureSince(s *send, until capping.Instant) bool {
	return slices.ContainsFunc(t.unsure, func(u span) bool { return u.from <= until && u.to >= s.from })
}

type messageKey struct{ namespace, id string }

// A policy holds the limits of one configuration version, and the period in which the limits were in force.
type policy struct {
	version     string
	policy      *capping.Policy // nil: unknown
	first, last capping.Instant // first and last call under the policy
	retention   capping.Instant
}

// A world holds the segments and time zones of users in one segments generation (published version).
type world struct {
	name  string
	known bool
	names []string
	zones []*time.Location
}

// The type "names" gives each name, such as that of an instance, a small number, so that a call can store the name in
// two bytes.
type names struct {
	list  []string
	known map[string]uint16
}

func (n *names) of(text string) uint16 {
	if i, ok := n.known[text]; ok {
		return i
	}
	if n.known == nil {
		n.known = map[string]uint16{}
	}
	i := uint16(len(n.list))
	n.known[text], n.list = i, append(n.list, text)
	return i
}

// The method "limits" returns the limits that apply to a send. The result "known" of the method "limits" is false if
// the limits are unknown.
func (t *table) limits(s *send) (limits []capping.Limit, known bool) {
	p := t.policies[s.policy].policy
	if p == nil {
		return nil, false
	}
	if len(p.Segments) == 0 {
		return p.Default, true
	}
	w := &t.worlds[s.world]
	if !w.known {
		return nil, false
	}
	if s.segment == 0 {
		return p.Default, true
	}
	return p.Limits(w.names[s.segment-1]), true
}

// The method location returns the user's time zone at the time of a send. The result "ok" of the method location is
// false if the time zone is unknown.
func (t *table) location(s *send) (place *time.Location, ok bool) {
	w := &t.worlds[s.world]
	switch {
	case !w.known:
		return nil, false
	case s.zone == 0:
		return cmp.Or(t.policies[s.policy].policy.Zone, time.UTC), true
	}
	return w.zones[s.zone-1], true
}

// The type "periods" caches the calendar period of a limit for each quarter of an hour.
type periods map[periodKey]capping.Rule

type periodKey struct {
	calendar capping.Calendar
	place    *time.Location
	quarter  int64
}

// The method rule returns the rule of a limit at an instant, with calendar periods in the user's time zone.
func (p periods) rule(l *capping.Limit, at capping.Instant, zone *time.Location) capping.Rule {
	if l.Calendar == "" {
		return l.RuleIn(at, 0, nil)
	}
	place := zone
	if !l.UserZone {
		place = cmp.Or(l.Location, time.UTC)
	}
	key := periodKey{l.Calendar, place, int64(at) / (15 * 60 * 1000)}
	if r, ok := p[key]; ok && r.Start <= at && at < r.Until {
		return r
	}
	r := l.RuleIn(at, 0, zone)
	p[key] = r
	return r
}
