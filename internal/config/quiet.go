package config

import (
	"fmt"
	"maps"
	"slices"

	"capper/internal/capping"
	"capper/internal/quiet"
	"capper/internal/yamltree"
)

// userZone is the value in a configuration file that means "the time zone of each user".
const userZone = "user"

// maxQuietSets is the maximum number of sets in one entry of quiet hours. The constant maxQuietSets limits the number
// of sets in which the service looks up each user of a call.
const maxQuietSets = 64

func (r *reader) quietHours(v yamltree.Value) {
	var at []yamltree.Value
	before := len(v.Faults())
	v.List(func(v yamltree.Value) {
		at = append(at, v)
		r.Policy.Quiet = append(r.Policy.Quiet, r.quiet(v))
	})
	if n := len(at); n > capping.MaxQuiet {
		v.Fault("must have at most %d entries, got %d", capping.MaxQuiet, n)
	}
	ofSets := 0
	for i := range r.Policy.Quiet {
		if len(r.Policy.Quiet[i].Sets) > 0 {
			ofSets++
		}
	}
	if ofSets > capping.MaxQuietOfSets {
		v.Fault("must have at most %d entries with sets, got %d", capping.MaxQuietOfSets, ofSets)
	}
	if len(v.Faults()) == before {
		r.quietAllDay(at)
	}
}

func (r *reader) quiet(v yamltree.Value) (q capping.Quiet) {
	clocks := 0 // number of valid times of day
	understood := func(to *quiet.Minute) yamltree.Field {
		return func(v yamltree.Value) {
			if clock(v, to) {
				clocks++
			}
		}
	}
	given := v.Object(map[string]yamltree.Field{
		"from":     understood(&q.Hours.From),
		"to":       understood(&q.Hours.To),
		"channels": func(v yamltree.Value) { q.Channels = r.someChannels(v) },
		"zone": func(v yamltree.Value) {
			zone := ""
			yamltree.Text(&zone)(v)
			if q.UserZone = zone == userZone; !q.UserZone {
				q.Location = location(v, "user, or ", zone)
			}
		},
		"sets":     func(v yamltree.Value) { q.Sets = quietSets(v) },
		"may_lose": mayLose(&q.MayLose),
	})
	switch {
	case given["may_lose"] && !given["sets"]:
		v.FaultOf("may_lose", "requires sets: it limits how many users may leave them")
	case given["sets"] && !given["may_lose"]:
		q.MayLose = quietMayLose
	}
	for _, key := range []string{"from", "to"} {
		if v.IsMapping() && !given[key] {
			v.FaultOf(key, "is required")
		}
	}
	if clocks == 2 && q.Hours.From == q.Hours.To {
		v.FaultOf("to", "must differ from from, got %s for both: put users who must never receive messages into a "+
			"set under suppress", q.Hours.To)
	}
	if !given["zone"] {
		r.Warnings = append(r.Warnings, v.Path()+".zone is not set: the hours are in UTC")
	}
	r.userZones = r.userZones || q.UserZone
	return q
}

// The function clock reads a time of day such as "21:00" from a configuration file. For an invalid time, the function
// clock records an error and returns false.
func clock(v yamltree.Value, to *quiet.Minute) (ok bool) {
	text, ok := v.Word()
	if !ok { // other YAML parsers read 21:00 without quotes as a number
		v.Fault("must be a time of the day in quotes, such as \"21:00\", got %s", v.Describe())
		return false
	}
	minute, err := quiet.ParseMinute(text)
	if err != nil {
		v.Fault("%s%s", err, clockHint(text))
		return false
	}
	*to = minute
	return true
}

// clockHint returns an explanation of the format of a time of day, for an error text.
func clockHint(text string) string {
	if text == "24:00" {
		return "; midnight is 00:00"
	}
	if minute, err := quiet.ParseMinute("0" + text); err == nil {
		return "; did you mean " + minute.String() + "?"
	}
	return ""
}

func quietSets(v yamltree.Value) []string {
	names := setNames(v, func(yamltree.Value, string) {})
	if n := len(names); v.IsList() && (n == 0 || n > maxQuietSets) {
		v.Fault("must name 1 to %d sets, got %d; leave it out to include all users", maxQuietSets, n)
	}
	return names
}

const (
	minutesOfDay = 24 * 60
	littleOpen   = 60 // minutes: quiet hours that leave less time for sends are probably unintended
)

// quietAllDay rejects quiet hours that together cover the whole day, because such quiet hours never end. The method
// quietAllDay adds up only quiet hours with equal time zones.
func (r *reader) quietAllDay(at []yamltree.Value) {
	for i := range r.Policy.Quiet {
		open, channel := r.openMinutes(i)
		switch {
		case open == 0:
			at[i].Fault("this entry and the earlier quiet hours leave no minute of the day for sends %s: "+
				"put users who must never receive messages into a set under suppress", r.on(channel))
		case open < littleOpen:
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s: only %dm of the day are open to sends %s", at[i].Path(),
				open, r.on(channel)))
		}
	}
}

// openMinutes finds the channel on which the first i+1 entries of quiet hours leave the fewest minutes a day for sends.
// openMinutes returns the number of minutes and the channel.
func (r *reader) openMinutes(i int) (least int, on capping.Channel) {
	least = minutesOfDay
	hours := &r.Policy.Quiet[i]
	for _, channel := range append([]capping.Channel{0}, slices.Sorted(maps.Values(r.Policy.Channels))...) {
		for _, set := range r.quietUsers(i) {
			if open := r.openTo(i, channel, set); hours.Channels.Has(channel) && open < least {
				least, on = open, channel
			}
		}
	}
	return least, on
}

// quietUsers returns the sets of users to which the quiet hours with the index i apply. If the result of quietUsers
// contains "", the quiet hours also apply to users who are in no set.
func (r *reader) quietUsers(i int) []string {
	if sets := r.Policy.Quiet[i].Sets; len(sets) > 0 {
		return sets
	}
	users := []string{""}
	for k := range r.Policy.Quiet[:i] {
		users = append(users, r.Policy.Quiet[k].Sets...)
	}
	return users
}

// openTo returns the number of minutes a day in which the users of a set may receive sends on the channel. The method
// openTo combines those of the first i+1 entries of quiet hours that have the same time zone as the entry i.
func (r *reader) openTo(i int, channel capping.Channel, set string) int {
	var closed [minutesOfDay]bool
	same := &r.Policy.Quiet[i]
	for k := range r.Policy.Quiet[:i+1] {
		q := &r.Policy.Quiet[k]
		if !q.Channels.Has(channel) || q.UserZone != same.UserZone || q.Location.String() != same.Location.String() ||
			len(q.Sets) > 0 && !slices.Contains(q.Sets, set) {
			continue
		}
		for minute := q.Hours.From; minute != q.Hours.To; minute = (minute + 1) % minutesOfDay {
			closed[minute] = true
		}
	}
	open := 0
	for _, isClosed := range closed {
		if !isClosed {
			open++
		}
	}
	return open
}

// The method "on" returns a text with the name of a channel, for an error message.
func (r *reader) on(channel capping.Channel) string {
	if channel == 0 {
		return "without a channel"
	}
	return "on " + r.Policy.ChannelName(channel)
}
