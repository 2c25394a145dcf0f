package pressure

import (
	"github.com/RoaringBitmap/roaring/v2"

	"capper/internal/audit"
	"capper/internal/bitmap"
	"capper/internal/capping"
)

// A message is a message on one channel, together with the message's sends that users' logs may still contain.
type message struct {
	capping.Message
	channel  capping.Channel
	counts   bool      // the configuration selects the message
	campaign *campaign // row of the message in the output
	parts    []part    // in order of time; two parts have common users only if a log has removed the send of the first
	sends    int       // number of users in all parts
	lastCall capping.Instant
	union    *roaring.Bitmap // users of the first joined parts; nil: must be computed again
	joined   int
	// The field unknown holds the users without a known send for whom a call had an unknown result. The field doubt
	// holds the users for whom a release had an unknown result. A nil bitmap contains no users.
	unknown, doubt *roaring.Bitmap
}

// A part holds the users of one filter call whose send of the message was not released.
type part struct {
	at    capping.Instant
	week  int
	raw   *bitmap.Bitmap  // users in the audit record
	users *roaring.Bitmap // nil: the users in raw
}

func (p *part) set() *roaring.Bitmap {
	if p.users == nil {
		p.users = p.raw.Roaring()
	}
	return p.users
}

// The method message returns the data about the message on the channel, and creates empty data if necessary.
func (e *engine) message(of capping.Message, channel capping.Channel) *message {
	for _, m := range e.messages[of] {
		if m.channel == channel {
			return m
		}
	}
	m := &message{Message: of, channel: channel, counts: e.counts(of, channel)}
	if m.counts || e.first {
		m.campaign = e.out.campaign(of, channel)
	}
	e.messages[of] = append(e.messages[of], m)
	return m
}

// The method sweep frees the memory of sends that no user's log contains any more. The method sweep frees memory about
// twenty times within the longest time for which a log keeps a send.
func (e *engine) sweep(now capping.Instant) {
	if now < e.swept+capping.Instant((e.keep/20).Milliseconds()) {
		return
	}
	e.swept = now
	horizon := now - capping.Instant(e.keep.Milliseconds())
	for of, channels := range e.messages {
		kept := channels[:0]
		for _, m := range channels {
			if m.lastCall > horizon {
				m.forget(horizon, &e.takers)
				kept = append(kept, m)
			} else {
				e.takers.remove(m)
			}
		}
		if clear(channels[len(kept):]); len(kept) == 0 {
			delete(e.messages, of)
		} else {
			e.messages[of] = kept
		}
	}
}

// The method forget removes the message's sends up to the horizon (users' logs have lost all sends up to this time).
func (m *message) forget(horizon capping.Instant, t *takers) {
	n := 0
	for n < len(m.parts) && m.parts[n].at <= horizon {
		m.sends -= int(m.parts[n].set().GetCardinality())
		n++
	}
	if n > 0 {
		clear(m.parts[:n])
		m.parts, m.union = m.parts[n:], nil
		t.changed(m)
	}
}

// The method filter counts the sends and denials in the audit record of a filter call.
func (e *engine) filter(r *audit.Record) {
	m := e.message(r.Message, r.Channel)
	m.lastCall = r.At
	for i := range r.Groups {
		switch g := &r.Groups[i]; g.Outcome {
		case audit.Allowed:
			if m.unknown != nil {
				m.unknown.AndNot(g.Users.Roaring())
			}
			e.sent(m, part{at: r.At, raw: g.Users})
		case audit.Replayed:
			e.replayed(m, r.At, g.Users)
		case audit.Unavailable:
			m.uncertain(g.Users.Roaring(), e.horizon(r))
		case audit.Denied:
			if g.By == capping.ByLimit && e.first {
				e.heldBack(m, r, g)
			}
		}
	}
}

// The method "sent" counts one send of the message to each user of a call.
func (e *engine) sent(m *message, p part) {
	n := int(p.raw.Cardinality())
	if n == 0 {
		return
	}
	p.week = e.week(p.at)
	m.parts = append(m.parts, p)
	if m.sends += n; m.doubt != nil {
		m.doubt.AndNot(p.set())
	}
	e.takers.changed(m)
	if e.first && m.counts && p.week >= 0 {
		m.campaign.sends[p.week] += int64(n)
	}
	e.people.add(m, p.at, p.week, p.raw)
}

// The method "replayed" counts a send of the message to the users of a repeated call for whom an earlier call had an
// unknown result.
func (e *engine) replayed(m *message, at capping.Instant, users *bitmap.Bitmap) {
	if m.unknown == nil || m.unknown.IsEmpty() {
		return
	}
	found := roaring.And(m.unknown, users.Roaring())
	m.unknown.AndNot(found)
	e.sent(m, part{at: at, raw: bitmap.OfSorted(found.ToArray())})
}

// The method "uncertain" notes the users for whom a call had an unknown result, except users with a known send of the
// message.
func (m *message) uncertain(users *roaring.Bitmap, horizon capping.Instant) {
	news := users.Clone()
	for i := range m.parts {
		if m.parts[i].at > horizon {
			news.AndNot(m.parts[i].set())
		}
	}
	if m.unknown == nil {
		m.unknown = news
		return
	}
	m.unknown.Or(news)
}

// The method horizon returns a time (the horizon) for a call. At the time of the call, users' logs had lost all sends
// up to the horizon.
func (e *engine) horizon(r *audit.Record) capping.Instant {
	return r.At - capping.Instant(e.policies[r.Config].Retention(r.Widening).Milliseconds())
}

// The method release subtracts the sends in the audit record of a release from the counts.
func (e *engine) release(r *audit.Record) {
	horizon := e.horizon(r)
	for _, m := range e.messages[r.Message] {
		if r.Channel != 0 && r.Channel != m.channel {
			continue
		}
		for i := range r.Groups {
			users := r.Groups[i].Users.Roaring()
			switch r.Groups[i].Outcome {
			case audit.Released:
				e.takeBack(m, users, horizon)
				m.settled(users)
			case audit.Absent:
				if m.doubt != nil {
					e.takeBack(m, roaring.And(m.doubt, users), horizon)
				}
				m.settled(users)
			case audit.ReleaseUnavailable:
				if m.doubt == nil {
					m.doubt = roaring.New()
				}
				m.doubt.Or(users)
			}
		}
	}
}

// The method "settled" removes users from the bitmaps "unknown" and "doubt", because the users' logs now certainly
// contain no send of the message.
func (m *message) settled(users *roaring.Bitmap) {
	if m.doubt != nil {
		m.doubt.AndNot(users)
	}
	if m.unknown != nil {
		m.unknown.AndNot(users)
	}
}

// takeBack subtracts, for each user, the latest send of the message from the counts. The method takeBack ignores sends
// up to the horizon, because users' logs have already lost these sends.
func (e *engine) takeBack(m *message, users *roaring.Bitmap, horizon capping.Instant) {
	left := users.Clone()
	for i := len(m.parts) - 1; i >= 0 && !left.IsEmpty() && m.parts[i].at > horizon; i-- {
		p := &m.parts[i]
		found := roaring.And(p.set(), left)
		if found.IsEmpty() {
			continue
		}
		left.AndNot(found)
		p.users = roaring.AndNot(p.users, found)
		n := int(found.GetCardinality())
		m.sends -= n
		m.union = nil
		if e.first && m.counts && p.week >= 0 {
			m.campaign.sends[p.week] -= int64(n)
			m.campaign.released[p.week] += int64(n)
		}
		e.people.remove(m, p.at, p.week, found)
	}
	e.takers.changed(m)
}
