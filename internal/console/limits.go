package console

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"capper/client/api"
	"capper/internal/console/frame"
)

// limitsPage returns the console page that describes the current policy (limits and other rules) in sentences.
func limitsPage(counts *Series, policies *Policies) frame.Page {
	return frame.Page{
		Path: "limits", Nav: "Limits", Live: true, Template: "limits.html whatifform.html", Files: files,
		Show: func(v *frame.Visit) (*frame.View, error) { return showLimits(v, counts, policies) },
	}
}

type limitsView struct {
	*api.Policy
	Withheld []string
	Versions []version
	WhatIf   whatIfForm
	Unknown  string // reason why earlier policies are unknown; "": they are known, or there is no audit
}

func showLimits(v *frame.Visit, counts *Series, policies *Policies) (*frame.View, error) {
	policy, err := v.API.Limits(v.Context())
	if err != nil {
		return nil, err
	}
	hour, day := counts.Hour(1), counts.Day(dayStep)
	campaigns, err := shadowed(v)
	if err != nil {
		return nil, err
	}
	known, err := policies.Versions(v.Context(), v.Now)
	unknown := ""
	if err != nil {
		unknown = err.Error()
	}
	tables := []*frame.Table{policyLimits(policy), shadowTable(policy, hour, day), channelsTable(policy)}
	if campaigns != nil {
		tables = append(tables, campaigns)
	}
	return &frame.View{
		Title:    "Limits",
		Question: "How many messages may each user receive, and when?",
		Data: limitsView{policy, policyWithheld(policy), versions(known),
			newWhatIfForm(policy, v.URL.Query(), v.Now), unknown},
		Tables: tables,
		Calls:  []string{"GET /v1/limits", "GET /v1/messages"},
	}, nil
}

func policyLimits(p *api.Policy) *frame.Table {
	t := &frame.Table{
		Name: "limits", Caption: "Limits by segment",
		Columns: []frame.Column{
			{Title: "Segment", Means: "default: users in no segment"},
			{Title: "Limit", Means: "its name in answers"}, {Title: "What it says"},
			{Title: "At most", Means: "sends in the window", Number: true}, {Title: "Window"},
			{Title: "Channels", Means: "whose sends count"}, {Title: "In force"},
		},
		Empty: "The configuration has no limits, so every user may receive every message. Add limits under the key " +
			"limits.",
	}
	add := func(segment string, limits []api.Limit) {
		if len(limits) == 0 {
			t.Rows = append(t.Rows, []frame.Cell{frame.Text(segment), frame.Text("none"),
				frame.Text("no limit: may receive every message"),
				frame.Text(""), frame.Text(""), frame.Text(""), frame.Text("")})
		}
		for _, l := range limits {
			force := "yes"
			if l.Shadow {
				force = "no: shadow limit, only counted"
			}
			t.Rows = append(t.Rows, []frame.Cell{
				frame.Text(segment), frame.Text(l.Name), frame.Text(sentence(l)), frame.Count(l.Max),
				frame.Text(windowOf(l)),
				frame.Text(channels(l.Channels)), frame.Text(force),
			})
		}
	}
	for _, segment := range slices.Sorted(maps.Keys(p.Segments)) {
		add(segment, p.Segments[segment])
	}
	add(api.NoSegment, p.Default)
	return t
}

// The function sentence describes a limit in words.
func sentence(l api.Limit) string {
	text := fmt.Sprintf("at most %s in %s, %s", sends(l.Max), windowOf(l), channels(l.Channels))
	if l.Max == 0 {
		text = "never, " + channels(l.Channels)
	}
	return text
}

// windowOf describes the window of a limit in words, for example "any 24 hours", "a calendar day (UTC)".
func windowOf(l api.Limit) string {
	if l.Calendar != "" {
		zone := l.Timezone
		if zone == "user" {
			zone = "in the user's time zone"
		}
		return "a calendar " + l.Calendar + " (" + zone + ")"
	}
	window, err := time.ParseDuration(l.Window)
	if err != nil {
		return "any " + l.Window
	}
	text := frame.Span(window)
	if hours := window.Hours(); hours <= 72 && hours == float64(int(hours)) && hours > 1 {
		text = fmt.Sprintf("%d hours", int(hours))
	}
	return "any " + withoutOne(text)
}

// withoutOne removes the number 1 before a unit of time: "hour" instead of "1 hour".
func withoutOne(text string) string {
	if rest, ok := strings.CutPrefix(text, "1 "); ok && !strings.Contains(rest, " ") {
		return rest
	}
	return text
}

func channels(names []string) string {
	if len(names) == 0 {
		return "all channels"
	}
	return "on " + frame.List(names)
}

func channelsTable(p *api.Policy) *frame.Table {
	t := &frame.Table{
		Name: "channels", Caption: "Channels that messages may be sent on",
		Columns: []frame.Column{{Title: "Channel"}, {Title: "Number", Means: "as logs keep it", Number: true}},
		Empty: "The configuration names no channels, so messages are sent without one. Add channels under the key " +
			"channels.",
	}
	for _, name := range slices.Sorted(maps.Keys(p.Channels)) {
		t.Rows = append(t.Rows, []frame.Cell{frame.Text(name), frame.Count(int(p.Channels[name]))})
	}
	return t
}

// policyWithheld returns sentences about the users to whom the policy allows no sends for reasons other than limits.
func policyWithheld(p *api.Policy) (said []string) {
	for _, s := range p.Suppress {
		text := fmt.Sprintf("Suppressed: users in the set %s receive nothing, %s", s.Set, channels(s.Channels))
		if s.EvenExempt {
			text += ", transactional messages included"
		}
		said = append(said, text+".")
	}
	if h := p.Holdout; h != nil {
		said = append(said, fmt.Sprintf("Holdout: %g %% of all users receive nothing, %s, as a control group (salt "+
			"%q).",
			h.Percent, channels(h.Channels), h.Salt))
	}
	for _, q := range p.Quiet {
		zone, who := q.Zone+" time", "no user receives messages"
		if q.Zone == "user" {
			zone = "in the user's time zone"
		}
		if len(q.Sets) > 0 {
			who = "users of " + frame.List(q.Sets) + " get nothing"
		}
		said = append(said, fmt.Sprintf("Quiet hours: from %s to %s (%s) %s, %s.", q.From, q.To, zone, who,
			channels(q.Channels)))
	}
	return said
}
