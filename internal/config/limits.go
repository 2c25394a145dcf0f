package config

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"capper/internal/capping"
	"capper/internal/segments"
	"capper/internal/yamltree"
	"capper/internal/zones"
)

// These constants are the maximum number of limits in a list of the configuration file, and the bounds of their
// windows. Because of maxLimits, the index of a limit fits into one byte, and a Redis script needs few arguments.
const (
	maxLimits = 32
	minWindow = time.Second
	maxWindow = 366 * 24 * time.Hour
)

func (r *reader) limits(v yamltree.Value) {
	given := v.Object(map[string]yamltree.Field{
		"default": func(v yamltree.Value) { r.Policy.Default = r.limitsOf(v) },
		"segments": func(v yamltree.Value) {
			v.Pairs(func(key string, at, val yamltree.Value) {
				switch {
				case key == segments.ReservedName:
					at.Fault("must not be the name of a segment: " +
						"this name stands for users in no segment, and their limits are limits.default")
				case segments.CheckName(key) != nil:
					at.Fault(capping.NameRule, key)
				}
				if val.IsNull() {
					at.Fault("must have limits: write {} for sends without limits")
					return
				}
				r.Policy.Segments[key] = r.limitsOf(val)
			})
			if n := len(r.Policy.Segments); n > segments.MaxSegments {
				v.Fault("must be at most %d segments, got %d", segments.MaxSegments, n)
			}
		},
	})
	if !given["default"] {
		r.Warnings = append(r.Warnings, "limits.default is not set: users in no segment, and users in segments "+
			"without limits, are uncapped")
	}
}

// limitsOf reads limits in the short form (a mapping with the keys "daily" and "weekly") or in the long form (a list).
func (r *reader) limitsOf(v yamltree.Value) []capping.Limit {
	limits := []capping.Limit{}
	if !v.IsList() {
		daily, weekly := -1, -1
		v.Object(map[string]yamltree.Field{
			"daily":  yamltree.Within(&daily, 0, capping.LogBound),
			"weekly": yamltree.Within(&weekly, 0, capping.LogBound),
		}, "for another window, write limits as a list, such as [{name: monthly, max: 3, calendar: month}]")
		if daily >= 0 {
			limits = append(limits, capping.Limit{Name: "daily", Max: daily, Window: 24 * time.Hour})
		}
		if weekly >= 0 {
			limits = append(limits, capping.Limit{Name: "weekly", Max: weekly, Window: 168 * time.Hour})
		}
		r.warnOfIdle(v, limits)
		return limits
	}
	names := map[string]bool{}
	v.List(func(v yamltree.Value) {
		limit := r.limit(v)
		if limit.Name != "" && names[limit.Name] {
			v.Fault("must be unique in its segment: %q is given twice", limit.Name)
		}
		names[limit.Name] = true
		limits = append(limits, limit)
	})
	if len(limits) > maxLimits {
		v.Fault("must be at most %d limits, got %d", maxLimits, len(limits))
	}
	if len(limits) > 0 && !slices.ContainsFunc(limits, func(l capping.Limit) bool { return !l.Shadow }) {
		r.Warnings = append(r.Warnings, v.Path()+": every limit is a shadow: these users are uncapped")
	}
	r.warnOfIdle(v, limits)
	return limits
}

// warnOfIdle warns of each limit that has no effect, because another limit counts the same sends and permits fewer of
// them.
func (r *reader) warnOfIdle(v yamltree.Value, limits []capping.Limit) {
	for i := range limits {
		idle := &limits[i]
		for j := range limits {
			strict := &limits[j]
			if idle.Shadow || strict.Shadow || strict.Max >= idle.Max || !strict.Covers(idle) {
				continue
			}
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s: the limit %s (max %d) has no effect: %s counts the same "+
				"sends for at least as long, with max %d", v.Path(), idle.Name, idle.Max, strict.Name, strict.Max))
			break
		}
	}
}

func (r *reader) limit(v yamltree.Value) (limit capping.Limit) {
	var calendar, zone string
	var zoneValue yamltree.Value
	given := v.Object(map[string]yamltree.Field{
		"name": func(v yamltree.Value) {
			yamltree.Text(&limit.Name)(v)
			r.names = append(r.names, v)
			if limit.Name != "" && !capping.IsName(limit.Name) {
				v.Fault(capping.NameRule, limit.Name)
			}
		},
		"max":      yamltree.Within(&limit.Max, 0, capping.LogBound),
		"window":   duration(&limit.Window, minWindow, maxWindow),
		"calendar": yamltree.OneOf(&calendar, calendarNames()...),
		"timezone": func(v yamltree.Value) { zoneValue = v; yamltree.Text(&zone)(v) },
		"channels": func(v yamltree.Value) { limit.Channels = r.channelSet(v) },
		"shadow":   yamltree.Bool(&limit.Shadow),
	})
	for _, key := range []string{"name", "max"} {
		if !given[key] {
			v.FaultOf(key, "is required")
		}
	}
	if given["window"] == given["calendar"] {
		v.Fault("must have exactly one of window and calendar")
	}
	if given["timezone"] && !given["calendar"] {
		v.FaultOf("timezone", "requires calendar: a rolling window does not depend on the time zone")
	}
	limit.Calendar = capping.Calendar(calendar)
	limit.UserZone = given["calendar"] && zone == userZone
	r.userZones = r.userZones || limit.UserZone
	if given["calendar"] && !limit.UserZone {
		limit.Location = location(zoneValue, "user, or ", zone)
	}
	return limit
}

// likeZone returns a hint for an error text: the only time zone whose last part has the given name, such as
// Europe/Berlin for "berlin". If no time zone or more than one time zone has the name, likeZone returns "".
func likeZone(name string) string {
	var like []string
	for _, zone := range zones.Names() {
		if strings.EqualFold(path.Base(zone), strings.ReplaceAll(name, " ", "_")) {
			like = append(like, zone)
		}
	}
	if len(like) != 1 {
		return ""
	}
	return ": did you mean " + like[0] + "?"
}

func calendarNames() (names []string) {
	for _, calendar := range capping.Calendars() {
		names = append(names, string(calendar))
	}
	return names
}

// checkNames rejects a limit with a name such as "suppressed", which responses and metrics use for other denials.
func (r *reader) checkNames(given map[string]bool) {
	reserved := map[string]string{suppressedName: "suppress", holdoutName: "holdout", quietName: "quiet"}
	for _, v := range r.names {
		if name, _ := v.Word(); given[reserved[name]] {
			v.Fault("must be another name, because results use this name for users denied by %s", reserved[name])
		}
	}
}

// The function location loads a time zone by its name. The argument "or" is the part of the error message that lists
// other permitted values.
func location(v yamltree.Value, or, zone string) *time.Location {
	if zone == "" {
		return time.UTC
	}
	l, err := zones.Load(zone)
	if err != nil {
		v.Fault("must be %sa time zone of the IANA database such as Asia/Singapore, got %q%s", or, zone, likeZone(zone))
		return time.UTC
	}
	return l
}

// The method "timezone" reads the key "timezone": the default time zone for users without a time zone.
func (r *reader) timezone(v yamltree.Value) {
	zone := ""
	yamltree.Text(&zone)(v)
	r.Policy.Zone = location(v, "", zone)
}

// checkZones warns if rules use the time zones of users but the configuration lacks the key "timezone". The method
// checkZones also warns if the configuration has the key "timezone" but no rule uses the time zones of users.
func (r *reader) checkZones(given map[string]bool) {
	switch {
	case r.userZones && !given["timezone"]:
		r.Warnings = append(r.Warnings, "timezone is not set: users in no set "+segments.ZonePrefix+
			"… use UTC where the time zone of the user counts")
	case !r.userZones && given["timezone"]:
		r.Warnings = append(r.Warnings, "timezone has no effect: no limit and no quiet hours use the time zone of "+
			"the user")
	}
}

func (r *reader) channelSet(v yamltree.Value) capping.ChannelSet {
	var channels []capping.Channel
	elements := 0
	v.List(func(v yamltree.Value) {
		elements++
		s, ok := v.Text()
		if !ok {
			return
		}
		channel, known := r.Policy.Channels[s]
		switch {
		case !known:
			v.Fault("must be one of the configured channels, got %q", s)
		case slices.Contains(channels, channel):
			v.Fault("is given twice: %q", s)
		default:
			channels = append(channels, channel)
		}
	})
	if v.IsList() && elements == 0 {
		v.Fault("must not be empty: leave it out to include all channels")
	}
	return capping.ChannelSetOf(channels...)
}
