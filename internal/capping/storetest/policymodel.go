package storetest

import (
	"fmt"
	"time"

	"capper/internal/capping"
	"capper/internal/share"
)

// policyModel is the naive model of a Capper, and predicts the Capper's decisions under a whole policy. A policyModel
// holds all sends of all users.
type policyModel struct {
	rules     *rules
	world     *world
	widen     time.Duration // added to the length of rolling windows
	retention time.Duration
	sends     map[capping.UserID][]policySend
	ends      map[string]time.Time // ends of calendar periods, by zone, unit and the text of the period
	places    map[string]*time.Location
}

func newModel(rules *rules, world *world) *policyModel {
	return &policyModel{
		rules: rules, world: world, sends: map[capping.UserID][]policySend{}, ends: map[string]time.Time{},
		places: map[string]*time.Location{},
	}
}

// The method "place" returns the time zone in which a rule of the policy applies to the user.
func (m *policyModel) place(zone string, user capping.UserID) *time.Location {
	zone = m.zoneBy(zone, user)
	if m.places[zone] == nil {
		m.places[zone] = load(zone)
	}
	return m.places[zone]
}

// policySend is one recorded send in the naive model of policies.
type policySend struct {
	at      time.Time
	channel capping.Channel
	message capping.Message
}

// The type "call" is a filter call in the naive model of policies.
type call struct {
	message capping.Message
	channel capping.Channel
	enforce bool
	at      time.Time
}

// policyAnswer is the decision that the naive model expects for one user.
type policyAnswer struct {
	outcome capping.Outcome
	by      string    // "suppressed", "holdout", "quiet" or the name of a limit; "": no denial
	set     string    // for "suppressed": name of the set
	zone    string    // for "quiet", and for limits in the user's time zone
	until   time.Time // zero: waiting never helps
	shadow  []string  // names of shadow limits that would have denied the send
}

func (m *policyModel) ask(user capping.UserID, c call) policyAnswer {
	for _, s := range m.rules.suppress {
		if s.channels.has(c.channel) && (c.enforce || s.evenExempt) && m.world.in(s.set, user) {
			return policyAnswer{outcome: capping.Denied, by: "suppressed", set: s.set}
		}
	}
	if c.enforce {
		if h := m.rules.held; h != nil && h.channels.has(c.channel) && share.Has(&h.share, user) {
			return policyAnswer{outcome: capping.Denied, by: "holdout"}
		}
		if night := m.night(user, c.channel, c.at); night != nil {
			return policyAnswer{outcome: capping.Denied, by: "quiet", zone: m.zoneBy(night.zone, user),
				until: m.opening(user, c.channel, c.at)}
		}
	}
	for _, s := range m.remembered(user, c.at) {
		if c.message.ID != "" && s.message == c.message && s.channel == c.channel {
			return policyAnswer{outcome: capping.Replayed}
		}
	}
	if !c.enforce {
		return policyAnswer{outcome: capping.Allowed}
	}
	return m.judge(user, c)
}

// The method "judge" applies the policy's limits to the user, and returns the decision that the naive model expects.
func (m *policyModel) judge(user capping.UserID, c call) policyAnswer {
	found := policyAnswer{outcome: capping.Allowed}
	var shadow []string
	never := c.at.AddDate(100, 0, 0)
	for _, l := range m.rules.of(m.world.segmentOf(user)) {
		if !l.channels.has(c.channel) || m.counts(l, user, c.at) < l.most {
			continue
		}
		if l.shadow {
			shadow = append(shadow, l.name)
			continue
		}
		until := never
		if l.most > 0 {
			until = m.frees(l, user, c.at)
		}
		if until.After(found.until) {
			found = policyAnswer{outcome: capping.Denied, by: l.name, until: until}
			if l.unit != "" && l.zone == "" {
				found.zone = m.zoneBy("", user)
			}
		}
	}
	switch {
	case found.outcome == capping.Allowed:
		found.shadow = shadow
	case found.until.Equal(never):
		found.until = time.Time{}
	default:
		found.until = m.opening(user, c.channel, found.until)
	}
	return found
}

// zoneBy returns the name of the time zone in which a rule of the policy applies to the user. If the rule has no zone
// of its own, zoneBy returns the zone of the user.
func (m *policyModel) zoneBy(zone string, user capping.UserID) string {
	if zone == "" {
		zone = m.world.zoneOf(user)
	}
	if zone == "" {
		zone = m.rules.zone
	}
	return zone
}

// The method "night" returns the policy's first quiet hours that are on for the user at the given time, or nil.
func (m *policyModel) night(user capping.UserID, channel capping.Channel, at time.Time) *quietHours {
	for i := range m.rules.quiet {
		if q := &m.rules.quiet[i]; q.channels.has(channel) && m.concerns(q, user) && m.on(q, user, at) {
			return q
		}
	}
	return nil
}

func (m *policyModel) concerns(q *quietHours, user capping.UserID) bool {
	for _, set := range q.sets {
		if m.world.in(set, user) {
			return true
		}
	}
	return len(q.sets) == 0
}

func (m *policyModel) on(q *quietHours, user capping.UserID, at time.Time) bool {
	shown, from, to := at.In(m.place(q.zone, user)).Format("15:04"), clock(q.from), clock(q.to)
	if from < to {
		return from <= shown && shown < to
	}
	return from <= shown || shown < to
}

// The constant "searched" is the longest time in the future in which the naive model searches for the end of quiet
// hours.
const searched = 5 * 24 * time.Hour

// The method "opening" returns the first minute, at or after the given time, at which the user has no quiet hours. If
// the user has no quiet hours at the given time, "opening" returns the given time. If the quiet hours of the user last
// for the next five days, "opening" returns the zero time.
func (m *policyModel) opening(user capping.UserID, channel capping.Channel, from time.Time) time.Time {
	for at := from; at.Before(from.Add(searched)); at = at.Truncate(time.Minute).Add(time.Minute) {
		if m.night(user, channel, at) == nil {
			return at
		}
	}
	return time.Time{}
}

// opensAt reports whether quiet hours of the user end exactly at the given time.
func (m *policyModel) opensAt(user capping.UserID, channel capping.Channel, at time.Time) bool {
	return m.night(user, channel, at) == nil && m.night(user, channel, at.Add(-time.Millisecond)) != nil
}

// The method "remembered" returns the user's sends that are younger than the retention (time for which the store keeps
// sends).
func (m *policyModel) remembered(user capping.UserID, at time.Time) (sends []policySend) {
	for _, s := range m.sends[user] {
		if at.Sub(s.at) < m.retention {
			sends = append(sends, s)
		}
	}
	return sends
}

// The method "shown" returns a text for the calendar day, week or month that contains the given time.
func (l limit) shown(at time.Time) string {
	switch l.unit {
	case "day":
		return at.Format(time.DateOnly)
	case "week":
		year, week := at.ISOWeek()
		return fmt.Sprint(year, "-W", week)
	case "month":
		return at.Format("2006-01")
	}
	panic("the model has no calendar " + l.unit)
}

// The method "counts" returns the number of the user's sends that count for the limit at the given time.
func (m *policyModel) counts(l limit, user capping.UserID, at time.Time) (n int) {
	location := m.place(l.zone, user)
	for _, s := range m.remembered(user, at) {
		switch {
		case !l.channels.has(s.channel):
		case l.unit == "" && at.Sub(s.at) < l.window+m.widen:
			n++
		case l.unit != "" && l.shown(s.at.In(location)) == l.shown(at.In(location)):
			n++
		}
	}
	return n
}

// The method "frees" returns the first time at which a full limit has a free slot again.
func (m *policyModel) frees(l limit, user capping.UserID, at time.Time) time.Time {
	if l.unit != "" {
		return m.end(l, m.place(l.zone, user), at)
	}
	for _, s := range m.sends[user] { // in ascending order of time
		if free := s.at.Add(l.window + m.widen); free.After(at) && m.counts(l, user, free) < l.most {
			return free
		}
	}
	panic("a window that never ends")
}

// The method "end" returns the first minute after the current day, week or month of the limit's calendar.
func (m *policyModel) end(l limit, location *time.Location, at time.Time) time.Time {
	shown := l.shown(at.In(location))
	key := location.String() + " " + l.unit + " " + shown
	if _, known := m.ends[key]; !known {
		for at = at.Truncate(time.Minute); l.shown(at.In(location)) == shown; {
			at = at.Add(time.Minute)
		}
		m.ends[key] = at
	}
	return m.ends[key]
}

func (m *policyModel) record(user capping.UserID, s policySend) {
	m.sends[user] = append(m.sends[user], s)
}

// The method "release" removes a user's sends of the message on the channel from the naive model; channel 0 means all
// channels. The result "remembered" of "release" reports whether one of the removed sends was younger than the
// retention (time for which the store keeps sends). The result "known" of "release" reports whether the model held any
// send of the message on the channel, even an older send.
func (m *policyModel) release(user capping.UserID, message capping.Message, channel capping.Channel,
	at time.Time) (remembered, known bool) {
	var kept []policySend
	for _, s := range m.sends[user] {
		if s.message != message || channel != 0 && s.channel != channel {
			kept = append(kept, s)
			continue
		}
		known, remembered = true, remembered || at.Sub(s.at) < m.retention
	}
	m.sends[user] = kept
	return remembered, known
}
