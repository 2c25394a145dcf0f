package pressure

import (
	"cmp"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/internal/audit"
	"capper/internal/capping"
)

// The type "takers" holds the messages that have enough sends to be takers (campaigns that cause denials of other
// campaigns).
type takers struct {
	min  int
	all  map[*message]bool
	list []*message // messages with the most sends; nil: must be computed again
}

// The method "changed" updates the takers (messages that may cause denials) after a change of a message's number of
// sends.
func (t *takers) changed(m *message) {
	if (m.sends >= t.min) != t.all[m] {
		if t.all == nil {
			t.all = map[*message]bool{}
		}
		if t.list = nil; m.sends >= t.min {
			t.all[m] = true
		} else {
			delete(t.all, m)
		}
	} else if t.all[m] && len(t.all) > mostTakers {
		t.list = nil
	}
}

func (t *takers) remove(m *message) {
	if t.all[m] {
		delete(t.all, m)
		t.list = nil
	}
}

// The method "largest" returns the messages with the most sends, at most mostTakers messages.
func (t *takers) largest() []*message {
	if t.list != nil || len(t.all) == 0 {
		return t.list
	}
	for m := range t.all {
		t.list = append(t.list, m)
	}
	slices.SortFunc(t.list, func(a, b *message) int {
		return cmp.Or(cmp.Compare(b.sends, a.sends), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ID, b.ID),
			cmp.Compare(a.channel, b.channel))
	})
	t.list = t.list[:min(len(t.list), mostTakers)]
	return t.list
}

// limitKey identifies a limit by its name and by the version of the configuration.
type limitKey struct{ config, limit string }

// A span holds all limits with the same name in one configuration. Several segments may each have a limit with the same
// name. Limits with a maximum of 0 are in a separate field, because no campaign causes their denials.
type span struct {
	limits   []capping.Limit // limits with a maximum above 0
	channels capping.ChannelSet
	zero     []bool // by segment code: the segment has this limit with a maximum of 0; nil: no such segment
}

// spanOf returns the limits of all segments for the given key (name of a limit and configuration version).
func (e *engine) spanOf(key limitKey) *span {
	if s := e.spans[key]; s != nil {
		return s
	}
	s, channels, all := &span{}, []capping.Channel(nil), false
	names := e.names()
	add := func(limits []capping.Limit) {
		for _, l := range limits {
			if l.Name != key.limit || l.Shadow {
				continue
			}
			if l.Max == 0 {
				s.zero = make([]bool, len(names))
				continue
			}
			s.limits = append(s.limits, l)
			channels = append(channels, l.Channels.Channels()...)
			all = all || l.Channels.All()
		}
	}
	policy := e.policies[key.config]
	add(policy.Default)
	for _, limits := range policy.Segments {
		add(limits)
	}
	if !all {
		s.channels = capping.ChannelSetOf(channels...)
	}
	for code := range s.zero {
		s.zero[code] = slices.ContainsFunc(policy.Limits(names[code]), func(l capping.Limit) bool {
			return l.Name == key.limit && !l.Shadow && l.Max == 0
		})
	}
	e.spans[key] = s
	return s
}

// The method "after" returns the beginning of the longest window of the limits in the argument s, at the time of a
// recorded call. A send after the returned time was within the window of at least one of the limits in s.
func (e *engine) after(s *span, r *audit.Record) capping.Instant {
	after := r.At
	for i := range s.limits {
		l := &s.limits[i]
		for _, zone := range e.people.zonesOf(l, e.policies[r.Config]) {
			rule := l.RuleIn(r.At, r.Widening, zone)
			after = min(after, rule.After(r.At))
		}
	}
	return after
}

// The constant lookedUp is the number of users whose segments are looked up in one step.
const lookedUp = 1 << 16

// The method "taken" returns those given users whose segment does not set the maximum of the limit to 0.
func (e *engine) taken(s *span, users *roaring.Bitmap) *roaring.Bitmap {
	switch {
	case s.zero == nil:
		return users
	case len(s.limits) == 0:
		return roaring.New()
	case e.Segments == nil:
		if s.zero[0] {
			return roaring.New()
		}
		return users
	}
	size := min(lookedUp, users.GetCardinality())
	kept, ids := roaring.New(), make([]uint32, size)
	var images []capping.UserID
	numbers, codes := make([]uint32, size), make([]uint8, size)
	it := users.ManyIterator()
	for n := it.NextMany(ids); n > 0; n = it.NextMany(ids) {
		e.Segments.Numbers(e.numbers.Users(&images, capping.AppendUsers(nil, ids[:n])), numbers[:n])
		e.Segments.Lookup(numbers[:n], codes[:n])
		for i, code := range codes[:n] {
			if !s.zero[code] {
				kept.Add(ids[i])
			}
		}
	}
	return kept
}

// heldBack counts the users in a group of an audit record to whom a limit denied the message for the first time. The
// method heldBack also counts the campaigns that had sent to the denied users before.
func (e *engine) heldBack(m *message, r *audit.Record, g *audit.Group) {
	week := e.week(r.At)
	if week < 0 || !m.counts {
		return
	}
	s := e.spanOf(limitKey{r.Config, g.Limit})
	news := e.taken(s, g.Users.Roaring())
	if c := m.campaign; c.users == nil {
		c.users = news.Clone()
	} else {
		news = roaring.AndNot(news, c.users)
		c.users.Or(news)
	}
	if news.IsEmpty() {
		return
	}
	m.campaign.held[week] += int64(news.GetCardinality())
	after := e.after(s, r)
	for _, taker := range e.takers.largest() {
		if !s.channels.Has(taker.channel) {
			continue
		}
		if n := taker.common(news, after); n > 0 {
			m.campaign.takenBy(e.out.campaign(taker.Message, taker.channel), int64(n))
		}
	}
}

// The method "common" returns the number of the given users with a send of the message after the given time.
func (m *message) common(users *roaring.Bitmap, after capping.Instant) (n uint64) {
	if len(m.parts) == 0 || m.parts[len(m.parts)-1].at <= after {
		return 0
	}
	if m.parts[0].at > after {
		return m.together().AndCardinality(users)
	}
	for i := len(m.parts) - 1; i >= 0 && m.parts[i].at > after; i-- {
		n += m.parts[i].set().AndCardinality(users)
	}
	return n
}

// The method "together" returns the set of all users who have a send of the message.
func (m *message) together() *roaring.Bitmap {
	if m.union == nil {
		m.union, m.joined = roaring.New(), 0
	}
	for ; m.joined < len(m.parts); m.joined++ {
		m.union.Or(m.parts[m.joined].set())
	}
	return m.union
}
