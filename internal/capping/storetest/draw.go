package storetest

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"capper/internal/capping"
	"capper/internal/share"
)

// zoneNames returns time zones with all kinds of clock changes: none, half an hour, one hour, two hours, and a change
// at midnight. The time zones that zoneNames returns lie on both sides of the date line.
func zoneNames() []string {
	return []string{
		"UTC", "Asia/Singapore", "Asia/Kolkata", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe",
		"Pacific/Apia", "Pacific/Kiritimati",
		"Asia/Beirut", "America/Havana", "Antarctica/Troll", "Africa/Casablanca",
	}
}

func setNames() []string     { return []string{"opted-out", "bounced", "sms-stop", "country/de"} }
func segmentNames() []string { return []string{"new", "vip"} }

func drawChannels(t *rapid.T, label string) policyChannels {
	return rapid.SampledFrom([]policyChannels{nil, nil, nil, {1}, {2}, {1, 2}}).Draw(t, label)
}

// drawWorld returns a test world with random segments and sets of the given users.
func drawWorld(t *rapid.T, generation string, users []capping.UserID) *world {
	w := &world{generation: generation}
	draw := func(name string) members {
		m := members{name: name}
		mask := rapid.Uint16().Draw(t, name) & rapid.Uint16().Draw(t, name+", of these")
		for i, user := range users {
			if mask>>i&1 == 1 {
				m.users = append(m.users, user)
			}
		}
		return m
	}
	for _, name := range segmentNames() {
		w.segments = append(w.segments, draw(name))
	}
	for _, name := range setNames() {
		w.sets = append(w.sets, draw(name))
	}
	for _, zone := range rapid.Permutation(zoneNames()).Draw(t, "zones")[:rapid.IntRange(0, 5).Draw(t, "zone sets")] {
		w.sets, w.zones = append(w.sets, draw(zonePrefix+zone)), append(w.zones, load(zone))
	}
	return w
}

func drawRules(t *rapid.T) *rules {
	r := &rules{zone: rapid.SampledFrom(zoneNames()).Draw(t, "zone"), limits: map[string][]limit{}}
	for _, set := range rapid.Permutation(setNames()).Draw(t, "suppress")[:rapid.IntRange(0, 2).Draw(t, "suppressed")] {
		r.suppress = append(r.suppress, suppression{set, drawChannels(t, "suppressed channels"),
			rapid.Bool().Draw(t, "even exempt")})
	}
	if rapid.Bool().Draw(t, "holdout") {
		held, err := share.New(share.Holdout, rapid.SampledFrom([]float64{5, 20, 50}).Draw(t, "percent"), "2027-q1")
		if err != nil {
			panic(err)
		}
		r.held = &heldOut{held, drawChannels(t, "holdout channels")}
	}
	for range rapid.IntRange(0, 3).Draw(t, "quiet hours") {
		r.quiet = append(r.quiet, drawQuiet(t))
	}
	r.limits[""] = drawLimits(t, "default")
	for _, segment := range segmentNames() {
		if rapid.Bool().Draw(t, segment+" limits") {
			r.limits[segment] = drawLimits(t, segment)
		}
	}
	// This limit gives the same retention to all policies that use one store.
	r.limits["nobody"] = []limit{{name: "month", most: 1, unit: "month"}}
	return r
}

func drawQuiet(t *rapid.T) quietHours {
	from := rapid.IntRange(0, 1439).Draw(t, "from")
	length := rapid.SampledFrom([]int{1, 60, 150, 480, 660, 720, 1439}).Draw(t, "length")
	q := quietHours{from: from, to: (from + length) % 1440, channels: drawChannels(t, "quiet channels")}
	q.zone = rapid.SampledFrom(append([]string{"", "", "", "", "", ""}, zoneNames()...)).Draw(t, "quiet zone")
	q.sets = rapid.SampledFrom([][]string{nil, nil, {"country/de"}, {"country/de", "sms-stop"}}).Draw(t, "quiet sets")
	return q
}

// The function "units" returns the names of all calendar units, and "" for a rolling window.
func units() []string {
	names := []string{""}
	for _, calendar := range capping.Calendars() {
		names = append(names, string(calendar))
	}
	return names
}

func drawLimits(t *rapid.T, segment string) (limits []limit) {
	for i := range rapid.IntRange(0, 4).Draw(t, segment) {
		l := limit{
			name: fmt.Sprint(segment, "-", i), most: rapid.SampledFrom([]int{0, 1, 1, 2, 2, 3, 4}).Draw(t, "most"),
			channels: drawChannels(t, "limit channels"), shadow: rapid.IntRange(0, 3).Draw(t, "shadow") == 0,
		}
		switch l.unit = rapid.SampledFrom(units()).Draw(t, "unit"); l.unit {
		case "":
			l.window = rapid.SampledFrom([]time.Duration{time.Second, time.Hour, policyDay, 7 * policyDay}).
				Draw(t, "window")
		default:
			l.zone = rapid.SampledFrom(append([]string{"", "", "", "", "", ""}, zoneNames()...)).Draw(t, "limit zone")
		}
		limits = append(limits, l)
	}
	return limits
}
