// Package policytext writes a policy as the keys of a configuration that decide:
// channels, limits, suppress, holdout, quiet and timezone, each at length, and the version of
// the file that they came from. config.ParsePolicy reads it; the same policy gives the same text.
package policytext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"capper/internal/capping"
)

// Of is the text of a policy.
func Of(p *capping.Policy) []byte {
	w := &writer{policy: p}
	w.line("version: %s", quoted(p.Version))
	w.channels()
	w.limits()
	w.suppress()
	if h := p.Holdout; h != nil {
		share := h.Share
		w.line("holdout: {percent: %s, salt: %s%s}", strconv.FormatFloat(share.Percent(), 'f', -1, 64),
			quoted(share.Salt()), w.onlyOn(h.Channels))
	}
	w.quiet()
	if p.Zone != nil {
		w.line("timezone: %s", quoted(p.Zone.String()))
	}
	return w.out.Bytes()
}

type writer struct {
	policy *capping.Policy
	out    bytes.Buffer
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(&w.out, format+"\n", args...) }

// quoted is a text between quotes: what is written so is a text to every reader of YAML.
func quoted(text any) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil { // texts and lists of them always encode
		return `""`
	}
	return string(bytes.TrimSpace(out.Bytes()))
}

func (w *writer) channels() {
	if len(w.policy.Channels) == 0 {
		return
	}
	w.line("channels:")
	for _, name := range slices.Sorted(maps.Keys(w.policy.Channels)) {
		w.line("  %s: %d", quoted(name), w.policy.Channels[name])
	}
}

// channelNames is the names of a set that is not all.
func (w *writer) channelNames(set capping.ChannelSet) string {
	var names []string
	for _, c := range set.Channels() {
		names = append(names, w.policy.ChannelName(c))
	}
	return quoted(names)
}

// onlyOn is the key channels within a mapping, "" for all.
func (w *writer) onlyOn(set capping.ChannelSet) string {
	if set.All() {
		return ""
	}
	return ", channels: " + w.channelNames(set)
}

func (w *writer) limits() {
	if len(w.policy.Default) == 0 && len(w.policy.Segments) == 0 {
		w.line("limits: {}")
		return
	}
	w.line("limits:")
	if len(w.policy.Default) > 0 {
		w.line("  default:")
		w.limitList("    ", w.policy.Default)
	}
	if len(w.policy.Segments) > 0 {
		w.line("  segments:")
	}
	for _, name := range slices.Sorted(maps.Keys(w.policy.Segments)) {
		limits := w.policy.Segments[name]
		if len(limits) == 0 {
			w.line("    %s: []", quoted(name))
			continue
		}
		w.line("    %s:", quoted(name))
		w.limitList("      ", limits)
	}
}

func (w *writer) limitList(indent string, limits []capping.Limit) {
	for i := range limits {
		l := &limits[i]
		text := fmt.Sprintf("name: %s, max: %d", quoted(l.Name), l.Max)
		if l.Calendar == "" {
			text += ", window: " + capping.Span(l.Window)
		} else {
			text += ", calendar: " + string(l.Calendar) + zone("timezone", l.UserZone, l.Location)
		}
		text += w.onlyOn(l.Channels)
		if l.Shadow {
			text += ", shadow: true"
		}
		w.line("%s- {%s}", indent, text)
	}
}

// zone is the key of a time zone within a mapping, "" for that which goes without saying.
func zone(key string, user bool, location *time.Location) string {
	switch {
	case user:
		return ", " + key + ": user"
	case location == nil || location == time.UTC:
		return ""
	}
	return ", " + key + ": " + quoted(location.String())
}

func (w *writer) suppress() {
	if len(w.policy.Suppress) == 0 {
		return
	}
	w.line("suppress:")
	for i := range w.policy.Suppress {
		s := &w.policy.Suppress[i]
		channels := "all"
		if !s.Channels.All() {
			channels = w.channelNames(s.Channels)
		}
		text := fmt.Sprintf("channels: %s, even_exempt: %t", channels, s.EvenExempt)
		if s.MaxAge > 0 {
			text += ", max_age: " + capping.Span(s.MaxAge)
		}
		w.line("  %s: {%s}", quoted(s.Set), text)
	}
}

func (w *writer) quiet() {
	if len(w.policy.Quiet) == 0 {
		return
	}
	w.line("quiet:")
	for i := range w.policy.Quiet {
		q := &w.policy.Quiet[i]
		text := fmt.Sprintf("from: %s, to: %s", quoted(q.Hours.From.String()), quoted(q.Hours.To.String()))
		text += w.onlyOn(q.Channels) + zone("zone", q.UserZone, q.Location)
		if len(q.Sets) > 0 {
			text += ", sets: " + quoted(q.Sets)
		}
		w.line("  - {%s}", text)
	}
}
