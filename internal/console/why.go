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
)

// whyMessage explains, for each channel, why the user got or did not get a message. The information comes from the
// audit (record of all decisions) or from the recorded sends.
func whyMessage(v *frame.Visit, k *userKnown, named string, days int) (list []state) {
	message, now := idOf(k, named), v.Now
	var seen []string // channels whose latest decision is already in the list
	for i := len(k.Past.Decisions) - 1; i >= 0; i-- {
		d := k.Past.Decisions[i]
		if d.MessageID != message || slices.Contains(seen, d.Channel) {
			continue
		}
		seen = append(seen, d.Channel)
		list = append(list, whyDecided(k, &d, now))
	}
	for i := len(k.Sends) - 1; i >= 0; i-- {
		s := k.Sends[i]
		if s.MessageID == nil || *s.MessageID != message || slices.Contains(seen, plain(s.Channel)) {
			continue
		}
		seen = append(seen, plain(s.Channel))
		list = append(list, state{"good", onChannel(plain(s.Channel)), "the send was recorded " +
			frame.Relative(now, s.At) + ".", "", ""})
	}
	if list != nil {
		return list
	}
	if !k.Past.Read {
		return []state{{"note", "Not known", "no send of this message is recorded. " + k.Past.Empty, "", ""}}
	}
	if noMessage(v, named) {
		return []state{{"note", "No such message", fmt.Sprintf("no message of the last %d days has this id or title.",
			countedDays), "Copy the id or the title from the page Campaigns. The letters of a title may be of any " +
			"case.", ""}}
	}
	return []state{{"note", "Never asked for", fmt.Sprintf("no call of the last %s named this user with this message, "+
		"and no send is recorded.", pastDays(days)),
		"Probably the user is not in the audience that the engine chose, or the id of the message is spelled " +
			"differently. Choose more days below to look further back.", ""}}
}

// countedDays is the number of days for which the service keeps the counts of a message after the last call about it.
const countedDays = 31

// noMessage reports whether the service does not know the message. A message is unknown if no counted or planned
// message has the id, and no message of the last countedDays has the title. If noMessage cannot find out whether the
// service knows the message, noMessage returns false.
func noMessage(v *frame.Visit, named string) bool {
	if _, err := v.API.Message(v.Context(), named, ""); !client.HasCode(err, client.CodeNotFound) {
		return false
	}
	found, err := v.API.Messages(v.Context(), client.MessagesQuery{ID: named, Max: 1000,
		Since: v.Now.AddDate(0, 0, -countedDays)})
	return err == nil && !found.More && !slices.ContainsFunc(found.Messages, func(m api.Message) bool {
		return m.MessageID == named || strings.EqualFold(m.Title, named)
	})
}

// idOf returns the id of the message that a visitor has named by its id or by its title. If a visitor names a message
// by its title, idOf ignores upper and lower case. If several messages have the title, idOf returns the id of the
// latest message.
func idOf(k *userKnown, named string) (id string) {
	take := func(of *string, title string) {
		if of != nil && (*of == named || id != named && strings.EqualFold(title, named)) {
			id = *of
		}
	}
	for i := range k.Sends {
		take(k.Sends[i].MessageID, k.Sends[i].Title)
	}
	for i := range k.Past.Decisions {
		take(&k.Past.Decisions[i].MessageID, k.Past.Decisions[i].Title)
	}
	return cmp.Or(id, named)
}

// whyDecided returns a text about the outcome and age of the decision d. The caller passes the latest decision about
// the message for the user on each channel.
func whyDecided(k *userKnown, d *api.Decision, now time.Time) state {
	s := state{Class: "note", Part: onChannel(d.Channel),
		What: outcomeWords(*d) + " " + frame.Relative(now, d.At) + "."}
	switch d.Outcome {
	case "allowed", "replayed":
		s.Class = "good"
		s.What = "the send was " + s.What + " If it did not arrive, ask the provider that delivered it."
	case "denied":
		s.Class = "bad"
		s.What = "held back " + frame.Relative(now, d.At) + " by " + heldBackBy(d.Limit)
		if d.Set != "" {
			s.What += " (" + d.Set + ")"
		}
		s.What += "."
		s.Do = nowOn(k, d.Channel)
	case "unavailable":
		s.Class = "warn"
	}
	return s
}

// nowOn returns a text about whether the user may receive a message on a channel now.
func nowOn(k *userKnown, channel string) string {
	for _, v := range k.Verdicts {
		switch {
		case v.Channel != channel:
		case v.Until.IsZero():
			return "Now on " + v.On() + ": " + v.Word + "."
		default:
			return "Now on " + v.On() + ": " + v.Word + " " + v.Until.UTC().Format(instant) + "."
		}
	}
	return ""
}

func onChannel(channel string) string {
	if channel == "" {
		return "Without a channel"
	}
	return "On " + channel
}
