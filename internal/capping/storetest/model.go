package storetest

import (
	"slices"
	"time"

	"capper/internal/capping"
)

// The type "send" is one recorded send in the naive model of a store.
type send struct {
	at      time.Time
	channel capping.Channel
	message capping.Message
}

// The type "window" is one limit in the naive model: a rolling window, or a calendar period from the field "start" to
// the field "until".
type window struct {
	most         int
	length       time.Duration // length of a rolling window; 0: a calendar period
	start, until time.Time
	channels     []capping.Channel // empty: all channels
	shadow       bool              // a shadow limit, which never denies
}

// The type "model" is the naive model with which the suite compares a store. The naive model holds all sends of all
// users, and removes sends only when a test releases a send or erases a user.
type model struct {
	retention time.Duration
	sends     map[capping.UserID][]send
}

// The method "counts" returns the number of given sends that count for the window at the given time.
func (w window) counts(sends []send, at time.Time) (n int) {
	for _, s := range sends {
		if len(w.channels) > 0 && !slices.Contains(w.channels, s.channel) {
			continue
		}
		if w.length > 0 && at.Sub(s.at) < w.length {
			n++
		}
		if w.length == 0 && at.Before(w.until) && !s.at.Before(w.start) {
			n++
		}
	}
	return n
}

func (w window) free(sends []send, at time.Time) bool { return w.counts(sends, at) < w.most }

// The method "remembered" returns the user's sends that are younger than the retention (time for which the store keeps
// sends).
func (m *model) remembered(user capping.UserID, at time.Time) (sends []send) {
	for _, s := range m.sends[user] {
		if at.Sub(s.at) < m.retention {
			sends = append(sends, s)
		}
	}
	return sends
}

// The type "answer" is the decision that the naive model of a store expects for one user. If the outcome is Denied, the
// field "until" is the first time at which all windows have a free slot, or zero for never. If the naive model allows
// the send, the field "shadow" lists the shadow windows (limits that only count) that have no free slot.
type answer struct {
	outcome capping.Outcome
	until   time.Time
	shadow  []int
}

func (m *model) ask(user capping.UserID, message capping.Message, channel capping.Channel, windows []window,
	at time.Time) answer {
	sends := m.remembered(user, at)
	for _, s := range sends {
		if message.ID != "" && s.message == message && s.channel == channel {
			return answer{outcome: capping.Replayed}
		}
	}
	var deciding []window
	allowed := answer{outcome: capping.Allowed}
	for i, w := range windows {
		switch {
		case !w.shadow:
			deciding = append(deciding, w)
		case !w.free(sends, at):
			allowed.shadow = append(allowed.shadow, i)
		}
	}
	if allFree(deciding, sends, at) {
		return allowed
	}
	return answer{outcome: capping.Denied, until: firstFree(deciding, sends, at)}
}

func allFree(windows []window, sends []send, at time.Time) bool {
	for _, w := range windows {
		if !w.free(sends, at) {
			return false
		}
	}
	return true
}

// firstFree returns the first time at which all windows have a free slot. The function firstFree tries, in order, every
// time at which the number of sends in a window can change.
func firstFree(windows []window, sends []send, now time.Time) time.Time {
	var changes []time.Time
	for _, w := range windows {
		if w.length == 0 {
			changes = append(changes, w.until)
		}
		for _, s := range sends {
			changes = append(changes, s.at.Add(w.length))
		}
	}
	slices.SortFunc(changes, time.Time.Compare)
	for _, at := range changes {
		if at.After(now) && allFree(windows, sends, at) {
			return at
		}
	}
	return time.Time{}
}

func (m *model) record(user capping.UserID, s send) { m.sends[user] = append(m.sends[user], s) }

// The method "release" removes a user's sends of the message on the channel from the naive model; channel 0 means all
// channels. The result "remembered" of "release" reports whether one of the removed sends was younger than the
// retention (time for which the store keeps sends). The result "known" of "release" reports whether the model held any
// send of the message on the channel, even an older send.
func (m *model) release(user capping.UserID, message capping.Message, channel capping.Channel,
	at time.Time) (remembered, known bool) {
	var kept []send
	for _, s := range m.sends[user] {
		if s.message != message || channel != 0 && s.channel != channel {
			kept = append(kept, s)
			continue
		}
		known = true
		remembered = remembered || at.Sub(s.at) < m.retention
	}
	m.sends[user] = kept
	return remembered, known
}

func (m *model) erase(user capping.UserID) { delete(m.sends, user) }
