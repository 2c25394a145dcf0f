package config

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"

	"capper/internal/capping"
	"capper/internal/quiet"
	"capper/internal/zones"
)

const (
	silenceDays  = 366 // number of checked days, which include all changes of daylight saving time
	maxSilences  = 500 // number of checked combinations of quiet hours
	silenceFirst = "quiet: "
)

// The function Silences describes each combination of quiet hours that forbids sends to some users for whole days. The
// function Silences checks all time zones, for one year from the given time. Each text that Silences returns names the
// affected channels and sets. The function Silences leaves out quiet hours that the service rejects at the start.
func Silences(p *capping.Policy, from time.Time) (list []string) {
	if len(p.Quiet) == 0 {
		return nil
	}
	s := &silences{policy: p, from: from, until: from.Add(silenceDays * 24 * time.Hour), found: map[uint32]silence{}}
	said := map[string][]string{} // channels by text
	var order []string
	channels := append([]capping.Channel{0}, slices.Sorted(maps.Values(p.Channels))...)
	for _, channel := range channels {
		for _, text := range s.on(channel) {
			if _, known := said[text]; !known {
				order = append(order, text)
			}
			said[text] = append(said[text], onChannel(p, channel))
		}
	}
	for _, text := range order {
		on := "all sends"
		if len(said[text]) < len(channels) {
			on = "sends " + strings.Join(said[text], ", ")
		}
		list = append(list, fmt.Sprintf(text, on))
	}
	if s.looked > maxSilences {
		list = append(list, silenceFirst+"there are too many combinations of hours, channels and sets to look at "+
			"all: days without an open minute may be missing here")
	}
	return list
}

func onChannel(p *capping.Policy, channel capping.Channel) string {
	if channel == 0 {
		return "without a channel"
	}
	return "on " + p.ChannelName(channel)
}

// The type "silences" holds the state of a search for days on which quiet hours forbid sends in every minute.
type silences struct {
	policy      *capping.Policy
	from, until time.Time
	classes     [][]string         // time zones with identical clocks for the whole year; nil: not yet computed
	found       map[uint32]silence // results by combination of quiet hours, in which each entry is one bit
	looked      int
}

// A silence maps a time zone to a text about the days on which quiet hours leave no minute for sends. A silence
// contains no time zones in which sends are possible on every day.
type silence map[string]string

// The method "on" returns texts about the days on which no send on the channel is possible. The first texts are about
// all users; the later texts are about the users of sets with more such days. Each returned text contains the
// placeholder %s for the names of the affected channels.
func (s *silences) on(channel capping.Channel) (list []string) {
	var common uint32
	var ofSets []int
	for i := range s.policy.Quiet {
		switch q := &s.policy.Quiet[i]; {
		case !q.Channels.Has(channel):
		case len(q.Sets) == 0:
			common |= 1 << i
		default:
			ofSets = append(ofSets, i)
		}
	}
	reported := map[uint32]silence{}
	for _, mask := range masks(common, ofSets) {
		list = append(list, s.texts(mask, s.beyond(mask, reported))...)
		reported[mask] = s.found[mask]
	}
	return list
}

// The function "masks" returns combinations of quiet hours as bit masks. Each combination consists of the quiet hours
// for all users, and of one subset of the quiet hours for sets. Smaller subsets come first.
func masks(common uint32, ofSets []int) (list []uint32) {
	for choice := range uint32(1) << len(ofSets) {
		mask := common
		for k, i := range ofSets {
			mask |= choice >> k & 1 << i
		}
		if mask != 0 {
			list = append(list, mask)
		}
	}
	slices.SortStableFunc(list, func(a, b uint32) int { return bits.OnesCount32(a) - bits.OnesCount32(b) })
	return list
}

// The method "beyond" works like the method "of", but leaves out time zones that the text about a smaller combination
// of quiet hours already names.
func (s *silences) beyond(mask uint32, reported map[uint32]silence) silence {
	more := maps.Clone(s.of(mask))
	for fewer, zones := range reported {
		if fewer&^mask == 0 {
			maps.DeleteFunc(more, func(zone, _ string) bool { return zones[zone] != "" })
		}
	}
	return more
}

// The constant "everywhere" replaces the time zone in a silence (days without possible sends) if the quiet hours do not
// depend on the users' time zones.
const everywhere = ""

// The method "of" returns the time zones in which a combination of quiet hours leaves whole days without a minute for
// sends.
func (s *silences) of(mask uint32) silence {
	if known, ok := s.found[mask]; ok {
		return known
	}
	silent := silence{}
	s.found[mask] = silent
	if s.looked++; s.looked > maxSilences {
		return silent
	}
	byUser, place := false, time.UTC
	for i := range s.policy.Quiet {
		if q := &s.policy.Quiet[i]; mask>>i&1 == 1 {
			byUser = byUser || q.UserZone
			if q.Location != nil {
				place = q.Location
			}
		}
	}
	if !byUser {
		s.look(mask, place, []string{everywhere}, silent)
		return silent
	}
	for _, class := range s.zones() {
		place, err := zones.Load(class[0])
		if err == nil { // a test loads all time zones
			s.look(mask, place, class, silent)
		}
	}
	return silent
}

// The method look finds the days on which users in the named time zones have no minute for sends. In all named time
// zones, the clocks show the same time as in the time zone "place".
func (s *silences) look(mask uint32, place *time.Location, names []string, silent silence) {
	var clocks []quiet.Clock
	for i := range s.policy.Quiet {
		q := &s.policy.Quiet[i]
		if mask>>i&1 == 0 {
			continue
		}
		at := place
		if !q.UserZone {
			if at = q.Location; at == nil {
				at = time.UTC
			}
		}
		clocks = append(clocks, quiet.Clock{Hours: q.Hours, Location: at})
	}
	first, days := quiet.SilentDays(clocks, place, s.from, s.until)
	if days == 0 {
		return
	}
	text := fmt.Sprintf("on %d days from %s on", days, first.In(place).Format(time.DateOnly))
	if days == 1 {
		text = "on " + first.In(place).Format(time.DateOnly)
	}
	if days >= silenceDays {
		text = "on every day"
	}
	for _, name := range names {
		silent[name] = text
	}
}

// The method "texts" describes the time zones in which a combination of quiet hours leaves whole days without a minute
// for sends. Each returned text contains the placeholder %s for the names of the affected channels.
func (s *silences) texts(mask uint32, silent silence) (list []string) {
	byDays := map[string][]string{}
	for zone, days := range silent {
		byDays[days] = append(byDays[days], zone)
	}
	var hours, sets []string
	for i := range s.policy.Quiet {
		if mask>>i&1 == 0 {
			continue
		}
		hours = append(hours, fmt.Sprintf("[%d]", i))
		if names := s.policy.Quiet[i].Sets; len(names) > 0 {
			sets = append(sets, strings.Join(names, " or "))
		}
	}
	to := ""
	if len(sets) > 0 {
		to = " to users in " + strings.Join(sets, " and ")
	}
	for _, days := range slices.Sorted(maps.Keys(byDays)) {
		list = append(list, strings.ReplaceAll(fmt.Sprintf("%s%s leave no minute of the day open to \x00%s, %s%s",
			silenceFirst, strings.Join(hours, " and "), to, days, s.inZones(byDays[days])), "%", "%%"))
		list[len(list)-1] = strings.Replace(list[len(list)-1], "\x00", "%s", 1)
	}
	return list
}

// inZones returns text that lists time zones. If more than half of all time zones are in the list, the text lists the
// other time zones as exceptions instead.
func (s *silences) inZones(names []string) string {
	if names[0] == everywhere {
		return ""
	}
	slices.Sort(names)
	all := zones.Names()
	if 2*len(names) <= len(all) {
		return fmt.Sprintf(", in %d time zones: %s", len(names), strings.Join(names, ", "))
	}
	others := slices.DeleteFunc(all, func(name string) bool { return slices.Contains(names, name) })
	if len(others) == 0 {
		return ", in every time zone"
	}
	return fmt.Sprintf(", in every time zone but %s", strings.Join(others, ", "))
}

// The method "zones" returns all time zones, in groups whose clocks are identical for the whole checked year.
func (s *silences) zones() [][]string {
	if s.classes != nil {
		return s.classes
	}
	index := map[string]int{}
	for _, name := range zones.Names() {
		place, err := zones.Load(name)
		if err != nil {
			continue
		}
		rules := s.rulesOf(place)
		at, known := index[rules]
		if !known {
			at = len(s.classes)
			index[rules], s.classes = at, append(s.classes, nil)
		}
		s.classes[at] = append(s.classes[at], name)
	}
	return s.classes
}

// rulesOf returns a text with all clock changes of a time zone in the checked period and on the days before and
// after. If two time zones have equal texts, their clocks are identical.
func (s *silences) rulesOf(place *time.Location) string {
	var text strings.Builder
	for at := s.from.Add(-72 * time.Hour); at.Before(s.until.Add(72 * time.Hour)); {
		_, offset := at.In(place).Zone()
		_, end := at.In(place).ZoneBounds()
		fmt.Fprint(&text, offset, " until ", end.Unix(), ";")
		if end.IsZero() {
			break
		}
		at = end
	}
	return text.String()
}
