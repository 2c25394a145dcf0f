package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"capper/client"
	"capper/client/api"
	"capper/internal/console/frame"
	"capper/internal/zones"
)

// A verdict tells whether the user may receive a message on a channel, and the reason.
type verdict struct {
	Channel string
	Class   string // good, warn or bad
	Word    string // may receive, not now, or never
	Text    string // reason in a sentence
	Until   time.Time
	Local   string // Until in the user's time zone; "": the zone is unknown
}

// The method On returns the name of the channel, or "without a channel" for sends without one.
func (v verdict) On() string {
	return cmp.Or(v.Channel, "without a channel")
}

// The function judge finds out whether the rules allow a send to the user on a channel now. The function judge uses the
// state of each rule from the API's response.
func judge(v *frame.Visit, k *userKnown, channel string) verdict {
	for _, s := range k.Suppressed {
		if counts(s.Channels, channel) {
			return verdict{channel, "bad", "nothing", fmt.Sprintf("the user is in the suppressed set %s%s and "+
				"receives nothing until removed from the set.", s.Set, addedWhen(k.Explanation, s.Set)),
				time.Time{}, ""}
		}
	}
	if h := k.Holdout; h != nil && counts(h.Channels, channel) {
		return verdict{channel, "bad", "nothing", fmt.Sprintf("the user is in the holdout, the control group of %g "+
			"%% who receive nothing.", h.Percent), time.Time{}, ""}
	}
	if len(k.Missing) > 0 {
		return verdict{channel, "warn", "not known", "the segments in use lack " + frame.List(k.Missing) +
			": sends that need the set are unavailable until it is published.", time.Time{}, ""}
	}
	if len(k.TooOld) > 0 {
		return verdict{channel, "warn", "not known", "the list " + frame.List(k.TooOld) +
			" is older than its max_age: sends that need the set are unavailable until a build confirms it.",
			time.Time{}, ""}
	}
	held := holding(k, channel)
	if held.never != "" {
		return verdict{channel, "bad", "nothing", held.never, time.Time{}, ""}
	}
	if len(held.because) == 0 {
		return verdict{channel, "good", "may receive", free(k, channel), time.Time{}, ""}
	}
	text := "because " + strings.Join(held.because, "; and ") + "."
	if then := quietThen(v, k, channel, held.until); then != "" {
		text += " " + then
	}
	return verdict{channel, "warn", "not before", text, held.until, inZone(held.until, k.Timezone)}
}

// inZone returns the text of a time in the user's time zone. If the time zone is unknown, inZone returns "".
func inZone(at time.Time, zone string) string {
	if zone == "" {
		return ""
	}
	place, err := zones.Load(zone)
	if err != nil {
		return ""
	}
	return at.In(place).Format("Mon 2 Jan, 15:04") + " in " + zone
}

// The function "counts" reports whether a rule with the given list of channels applies to sends on the given channel.
func counts(channels []string, channel string) bool {
	return len(channels) == 0 || slices.Contains(channels, channel)
}

// The type "held" describes the rules that now deny sends to the user on a channel.
type held struct {
	never   string // reason why waiting does not help; "": waiting helps
	because []string
	until   time.Time // time from which none of these rules denies sends
}

// The function "holding" finds the limits that allow no further send, and the quiet hours that apply now.
func holding(k *userKnown, channel string) held {
	var h held
	for _, l := range k.Limits {
		switch {
		case l.Shadow || !counts(l.Channels, channel) || l.Used < l.Max:
		case l.Max == 0:
			h.never = fmt.Sprintf("the limit %s never allows a send.", l.Name)
		case l.RetryAt != nil:
			h.because = append(h.because, fmt.Sprintf("%s has %d of %s used in %s", l.Name, l.Used, sends(l.Max),
				windowWords(l.Limit)))
			h.until = later(h.until, *l.RetryAt)
		}
	}
	for _, q := range k.Quiet {
		if q.Now && counts(q.Channels, channel) && q.Until != nil {
			h.because = append(h.because, "quiet hours are active for the user ("+q.From+" to "+q.To+")")
			h.until = later(h.until, *q.Until)
		}
	}
	return h
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// The function "free" returns a text with the used and the permitted sends of each limit on a channel.
func free(k *userKnown, channel string) string {
	var left []string
	for _, l := range k.Limits {
		if !l.Shadow && counts(l.Channels, channel) {
			left = append(left, fmt.Sprintf("%s has %d of %s used in %s", l.Name, l.Used, sends(l.Max),
				windowWords(l.Limit)))
		}
	}
	if len(left) == 0 {
		return "no limit applies to this channel for the user."
	}
	return strings.Join(left, "; ") + "."
}

// quietThen asks the API whether quiet hours will deny a send at the time when the limits allow a further send.
func quietThen(v *frame.Visit, k *userKnown, channel string, at time.Time) string {
	if !slices.ContainsFunc(k.Quiet, func(q api.QuietStanding) bool { return counts(q.Channels, channel) }) {
		return ""
	}
	request := k.User.forecast(&client.ForecastRequest{Channel: channel, At: []time.Time{at}})
	f, err := v.API.Forecast(v.Context(), request)
	if err != nil || len(f.Forecasts) == 0 || f.Forecasts[0].Summary.Denied[api.LimitQuiet] == 0 {
		return ""
	}
	return "Quiet hours are active then, so the send must wait until they end."
}

// The function "notes" describes, in sentences, the rules other than limits that apply to the user.
func notes(e *api.Explanation) (list []string) {
	for _, s := range e.Suppressed {
		text := fmt.Sprintf("Suppressed: in the set %s%s, %s.", s.Set, addedWhen(e, s.Set), onChannels(s.Channels))
		if s.EvenExempt {
			text = fmt.Sprintf("Suppressed: in the set %s%s, %s, transactional messages included.", s.Set,
				addedWhen(e, s.Set), onChannels(s.Channels))
		}
		list = append(list, text)
	}
	for i := range e.Live {
		if m := &e.Live[i]; m.Change == api.ChangeRemoved {
			list = append(list, fmt.Sprintf("Removed from the set %s%s.", m.Set, liveWords(m)))
		}
	}
	if h := e.Holdout; h != nil {
		list = append(list, fmt.Sprintf("Held out: in the control group of %g %% who receive nothing, %s.", h.Percent,
			onChannels(h.Channels)))
	}
	for _, q := range e.Quiet {
		now := "off now"
		if q.Now {
			now = "on now"
		}
		list = append(list, fmt.Sprintf("Quiet hours from %s to %s (%s), %s: %s.", q.From, q.To,
			zoneWords(q.Zone, e.Timezone), onChannels(q.Channels), now))
	}
	if len(e.Missing) > 0 {
		list = append(list, "Not published: "+frame.List(e.Missing)+". Results that need these sets assume that the "+
			"user "+
			"is in none of them.")
	}
	if len(e.WouldBeDeniedBy) > 0 {
		list = append(list, "Shadow limits that are full, which deny no user: "+frame.List(e.WouldBeDeniedBy)+".")
	}
	return list
}

// addedWhen returns a text with the time and the client of the API call that added the user to the set. If the
// published build of the set contains the user, addedWhen returns "".
func addedWhen(e *api.Explanation, set string) string {
	for i := range e.Live {
		if m := &e.Live[i]; m.Set == set && m.Change == api.ChangeAdded {
			return liveWords(m)
		}
	}
	return ""
}

func liveWords(m *api.LiveMembership) string {
	return " since " + m.Since.UTC().Format("Mon 2 Jan, 15:04:05 UTC") + " by a call of " + m.By
}

func onChannels(names []string) string {
	if len(names) == 0 {
		return "on all channels"
	}
	return "on " + frame.List(names)
}

func zoneWords(zone, of string) string {
	if zone != "user" {
		return zone
	}
	if of == "" {
		return "the user's time"
	}
	return "the user's time, " + of
}

func sends(n int) string {
	if n == 1 {
		return "1 send"
	}
	return fmt.Sprintf("%d sends", n)
}

// windowWords describes the window of a limit in words, for example "any 24 hours", "the calendar day (UTC)".
func windowWords(l api.Limit) string {
	if l.Calendar != "" {
		return "the calendar " + l.Calendar + " (" + zoneWords(l.Timezone, "") + ")"
	}
	window, err := time.ParseDuration(l.Window)
	if err != nil {
		return "any " + l.Window
	}
	if hours := window.Hours(); hours > 1 && hours <= 72 && hours == float64(int(hours)) {
		return fmt.Sprintf("any %d hours", int(hours))
	}
	return "any " + strings.TrimPrefix(frame.Span(window), "1 ")
}
