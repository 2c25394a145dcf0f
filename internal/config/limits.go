package config

import (
	"fmt"
	"slices"
	"time"

	"github.com/goccy/go-yaml/ast"

	"capper/internal/capping"
)

// Bounds of limits. maxLimits keeps a rule's index in a byte and a script
// call's arguments short.
const (
	maxLimits   = 32
	maxSegments = 255
	minWindow   = time.Second
	maxWindow   = 366 * 24 * time.Hour
)

// reserved is how answers and metrics name the users in no segment.
const reserved = "default"

func (c *Config) readLimits(v value) {
	given := v.object(map[string]field{
		"default": func(v value) { c.Policy.Default = c.limits(v) },
		"segments": func(v value) {
			v.pairs(func(key string, at, val value) {
				if !name.MatchString(key) {
					at.fault(nameRule, key)
				}
				if key == reserved {
					at.fault("is the name of users in no segment: their limits are limits.default")
				}
				if val.isNull() {
					at.fault("must have limits; {} is uncapped")
					return
				}
				c.Policy.Segments[key] = c.limits(val)
			})
			if n := len(c.Policy.Segments); n > maxSegments {
				v.fault("must be at most %d segments, got %d", maxSegments, n)
			}
		},
	})
	if !given["default"] {
		c.Warnings = append(c.Warnings, "limits.default is not set: users in no segment, and in segments without limits of their own, are uncapped")
	}
}

// limits reads the short form (a mapping of daily and weekly) or the long one
// (a list).
func (c *Config) limits(v value) []capping.Limit {
	limits := []capping.Limit{}
	if !v.isSequence() {
		daily, weekly := -1, -1
		v.object(map[string]field{
			"daily":  within(&daily, 0, capping.LogBound),
			"weekly": within(&weekly, 0, capping.LogBound),
		})
		if daily >= 0 {
			limits = append(limits, capping.Limit{Name: "daily", Max: daily, Window: 24 * time.Hour})
		}
		if weekly >= 0 {
			limits = append(limits, capping.Limit{Name: "weekly", Max: weekly, Window: 168 * time.Hour})
		}
		return limits
	}
	names := map[string]bool{}
	v.list(func(v value) {
		limit := c.limit(v)
		if limit.Name != "" && names[limit.Name] {
			v.fault("must have a name of its own in the segment: %q is given twice", limit.Name)
		}
		names[limit.Name] = true
		limits = append(limits, limit)
	})
	if len(limits) > maxLimits {
		v.fault("must be at most %d limits, got %d", maxLimits, len(limits))
	}
	return limits
}

func (c *Config) limit(v value) (limit capping.Limit) {
	var calendar, zone string
	var zoneValue value
	given := v.object(map[string]field{
		"name": func(v value) {
			text(&limit.Name)(v)
			if limit.Name != "" && !name.MatchString(limit.Name) {
				v.fault(nameRule, limit.Name)
			}
		},
		"max":      within(&limit.Max, 0, capping.LogBound),
		"window":   duration(&limit.Window, minWindow, maxWindow),
		"calendar": oneOf(&calendar, string(capping.CalendarDay), string(capping.CalendarWeek)),
		"timezone": func(v value) { zoneValue = v; text(&zone)(v) },
		"channels": func(v value) { limit.Channels = c.channelSet(v) },
	})
	for _, key := range []string{"name", "max"} {
		if !given[key] {
			v.fault("%s: is required", key)
		}
	}
	if given["window"] == given["calendar"] {
		v.fault("must have exactly one of window and calendar")
	}
	if given["timezone"] && !given["calendar"] {
		zoneValue.fault("goes with calendar only: a rolling window is the same in every time zone")
	}
	limit.Calendar = capping.Calendar(calendar)
	if given["calendar"] {
		limit.Location = location(zoneValue, zone)
	}
	return limit
}

func location(v value, zone string) *time.Location {
	if zone == "" {
		return time.UTC
	}
	l, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		v.fault("must be a time zone of the IANA database such as Asia/Singapore, got %q", zone)
		return time.UTC
	}
	return l
}

func (c *Config) channelSet(v value) capping.ChannelSet {
	var channels []capping.Channel
	v.list(func(v value) {
		s, ok := v.str()
		if !ok {
			return
		}
		channel, known := c.Policy.Channels[s]
		switch {
		case !known:
			v.fault("must be one of the configured channels, got %q", s)
		case slices.Contains(channels, channel):
			v.fault("is given twice: %q", s)
		default:
			channels = append(channels, channel)
		}
	})
	if n, ok := v.node.(*ast.SequenceNode); ok && len(n.Values) == 0 {
		v.fault("must name a channel; leave it out for all")
	}
	return capping.ChannelSetOf(channels...)
}

// ChannelName is the configured name of a channel; of 0 it is "", of a number
// that is no longer configured "channel-N".
func ChannelName(p *capping.Policy, c capping.Channel) string {
	if c == 0 {
		return ""
	}
	for name, number := range p.Channels {
		if number == c {
			return name
		}
	}
	return fmt.Sprintf("channel-%d", c)
}
