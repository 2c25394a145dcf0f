package console

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"capper/client"
	"capper/client/api"
	"capper/internal/chart"
	"capper/internal/console/frame"
)

// pressurePage returns the console page about the number of messages per person.
func pressurePage() frame.Page {
	return frame.Page{Path: "pressure", Nav: "Pressure", Template: "pressure.html", Files: files, Show: showPressure}
}

// pressureView is the data for the template of the page about the number of messages per person.
type pressureView struct {
	Channels, Weeks []choice
	Says            []string // summary in sentences
	More            bool
	Faults          []string
}

// People with pressureMost or more messages are in one group on the page. The constant pressureWeeks is the number of
// weeks that the page shows for a segment, channel or team. The constant pressureTakers is the maximum number of other
// campaigns that the page shows as the reason why a campaign was held back.
const (
	pressureMost   = 5
	pressureWeeks  = 2
	pressureTakers = 3
)

func showPressure(v *frame.Visit) (*frame.View, error) {
	query := v.URL.Query()
	policy, err := v.API.Limits(v.Context())
	if err != nil {
		return nil, err
	}
	weeks, _ := strconv.Atoi(query.Get("weeks"))
	if weeks != 2 && weeks != 13 {
		weeks = 5
	}
	channel := query.Get("channel")
	view := &frame.View{Title: "Pressure", Question: "How many messages do people get, and who takes whose slots?"}
	data := &pressureView{Channels: chosen(channelChoices(policy), channel), Weeks: chosen([]choice{
		{Value: "2", Text: "2 weeks"}, {Value: "5", Text: "5 weeks"}, {Value: "13", Text: "13 weeks"},
	}, strconv.Itoa(weeks))}
	view.Data = data
	p, err := v.API.Pressure(v.Context(), client.PressureQuery{Weeks: weeks, Channel: channel})
	if client.HasCode(err, client.CodeConflict) {
		data.Says = []string{"This service records no audit, so messages per person are unknown. Add the key audit " +
			"to the configuration to record decisions."}
		p, err = &api.Pressure{Weeks: []api.PressureWeek{{}}}, nil
	}
	if err != nil {
		return nil, err
	}
	if len(p.People) > 0 {
		data.Says = pressureSays(p)
		view.Pictures = []*frame.Picture{pressurePicture(p)}
	}
	data.More, data.Faults = p.More, p.Faults
	view.Tables = []*frame.Table{pressurePeople(p), pressureLimits(p), pressureTeams(p), pressureCampaigns(p),
		pressureHeld(p)}
	call := "GET /v1/pressure?weeks=" + strconv.Itoa(weeks)
	if channel != "" {
		call += "&channel=" + url.QueryEscape(channel)
	}
	view.Calls = []string{call}
	return view, nil
}

// pressureReached returns the number of people who received at least one message.
func pressureReached(s *api.PressureSpread) int64 { return pressureTotal(s.Got) }

func pressureTotal(list []int64) (sum int64) {
	for _, n := range list {
		sum += n
	}
	return sum
}

// pressureSays returns a summary of the messages per person, in sentences.
func pressureSays(p *api.Pressure) []string {
	week := &p.People[0].Weeks[0]
	text := fmt.Sprintf("In the last 7 days %s people got %s messages", pressureCount(pressureReached(week)),
		pressureCount(week.Messages))
	if pressureKnown(p) > 1 {
		before := &p.People[0].Weeks[1]
		text += fmt.Sprintf("; in the 7 days before, %s people got %s", pressureCount(pressureReached(before)),
			pressureCount(before.Messages))
	}
	says := []string{text + "."}
	if first := p.Weeks[len(p.Weeks)-1].From; p.AuditBegins.After(first) {
		says = append(says, "The audit begins on "+p.AuditBegins.Format("2 January 2006, 15:04 UTC")+"; earlier "+
			"messages are unknown.")
	}
	at := int64(0)
	for i := range p.AtLimits {
		at += p.AtLimits[i].Any
	}
	return append(says, fmt.Sprintf("%s people are at a limit now: the next message that the limit counts is held "+
		"back.", pressureCount(at)))
}

func pressureCount(n int64) string { return frame.Count(n).Text }

// pressureColumns returns the numbers of people who received 1 message, 2 messages, and so on. The last element of the
// result counts people with pressureMost or more messages.
func pressureColumns(s *api.PressureSpread) []int64 {
	return append(slices.Clone(s.Got[:pressureMost-1]), pressureTotal(s.Got[pressureMost-1:]))
}

// pressurePicture returns a chart of the number of people by the number of messages that they received, for the last
// two weeks.
func pressurePicture(p *api.Pressure) *frame.Picture {
	labels := []string{"got 1", "got 2", "got 3", "got 4", "got 5 or more"}
	var series []chart.Series
	weeks := p.People[0].Weeks
	for i := range weeks[:min(2, pressureKnown(p))] {
		s := chart.Series{Name: []string{"last 7 days", "7 days before"}[i]}
		for _, n := range pressureColumns(&weeks[i]) {
			s.Values = append(s.Values, float64(n))
		}
		series = append(series, s)
	}
	draw := func(narrow bool) func(dark bool) ([]byte, error) {
		return func(dark bool) ([]byte, error) {
			return chart.Bars(chart.Picture{Labels: labels, Dark: dark, Slim: narrow, Unit: "people"}, series, false)
		}
	}
	return &frame.Picture{
		Name: "people", Alt: "People by number of messages in the last 7 days, beside the 7 days before. The table " +
			"below has the numbers.",
		Caption: "People by number of messages",
		Draw:    draw(false), Slim: draw(true),
	}
}

// pressureKnown returns the number of weeks for which the audit contains calls.
func pressureKnown(p *api.Pressure) int {
	known := 1
	for known < len(p.Weeks) && p.Weeks[known].To.After(p.AuditBegins) {
		known++
	}
	return known
}

func pressurePeople(p *api.Pressure) *frame.Table {
	t := &frame.Table{
		Name: "people", Caption: "People by number of messages in a week",
		Columns: []frame.Column{{Title: "People"}, {Title: "Week"},
			{Title: "Messages", Number: true}, {Title: "Got 0", Means: "people", Number: true}},
		Empty: "No messages in this time. A message counts after a call to POST /v1/filter allowed it.",
	}
	for n := 1; n <= pressureMost; n++ {
		title := fmt.Sprint("Got ", n)
		if n == pressureMost {
			title += " or more"
		}
		t.Columns = append(t.Columns, frame.Column{Title: title, Means: "people", Number: true})
	}
	for i := range p.People {
		row := &p.People[i]
		weeks := pressureKnown(p)
		if row.By != api.PressureAll {
			weeks = min(weeks, pressureWeeks)
		}
		for k := range row.Weeks[:weeks] {
			s := &row.Weeks[k]
			none := frame.Text("unknown")
			if s.None != nil {
				none = frame.Count(*s.None)
			}
			cells := []frame.Cell{frame.Text(pressureName(row)), frame.Text(pressureWeek(p, k)),
				frame.Count(s.Messages), none}
			for _, n := range pressureColumns(s) {
				cells = append(cells, frame.Count(n))
			}
			t.Rows = append(t.Rows, cells)
		}
	}
	return t
}

// pressureWeek returns a text that names a week by its last day. The name of the week has non-breaking spaces, so
// that it stays on one line.
func pressureWeek(p *api.Pressure, week int) string {
	return strings.ReplaceAll("to "+p.Weeks[week].To.UTC().Format("2 Jan"), " ", "\u00a0")
}

func pressureName(row *api.PressurePeople) string {
	switch {
	case row.By == api.PressureAll:
		return "Everybody"
	case row.By == api.PressureSegment:
		return "Segment " + row.Name
	case row.By == api.PressureChannel && row.Name == "":
		return "Without a channel"
	case row.By == api.PressureChannel:
		return "Channel " + row.Name
	case row.Name == "":
		return "Without a team"
	}
	return "Team " + row.Name
}

func pressureLimits(p *api.Pressure) *frame.Table {
	t := &frame.Table{
		Name: "at-limits", Caption: "People at a limit now",
		Columns: []frame.Column{{Title: "Segment"}, {Title: "Limit"}, {Title: "Channels", Means: "whose sends count"},
			{Title: "People", Number: true}, {Title: "Of the segment", Means: "percent", Number: true}},
		Empty: "No limit denies anything: the configuration has none.",
	}
	for i := range p.AtLimits {
		row := &p.AtLimits[i]
		add := func(limit string, of []string, users int64) {
			part := frame.Text("")
			if row.Size != nil {
				part = share(users, *row.Size)
			}
			name := row.Segment
			if name == api.NoSegment {
				name = "none"
			}
			t.Rows = append(t.Rows, []frame.Cell{frame.Text(name), frame.Text(limit), frame.Text(channels(of)),
				frame.Count(users), part})
		}
		for _, l := range row.Limits {
			add(fmt.Sprintf("%s: %d in %s", l.Name, l.Max, l.Window), l.Channels, l.Users)
		}
		if len(row.Limits) > 1 {
			add("any of them", nil, row.Any)
		}
	}
	return t
}

// pressureTeams returns a table with the percentage of the messages that each channel and each team sent.
func pressureTeams(p *api.Pressure) *frame.Table {
	t := &frame.Table{
		Name: "teams", Caption: "Messages by channel and team, the last 7 days",
		Columns: []frame.Column{{Title: "Sent by"}, {Title: "Messages", Number: true},
			{Title: "Share", Means: "percent", Number: true},
			{Title: "Before", Means: "messages, 7 days before", Number: true}},
		Empty: "No messages in this time.",
	}
	for i := range p.People {
		row := &p.People[i]
		if row.By != api.PressureChannel && row.By != api.PressureNamespace {
			continue
		}
		before := frame.Text("unknown")
		if pressureKnown(p) > 1 {
			before = frame.Count(row.Weeks[1].Messages)
		}
		t.Rows = append(t.Rows, []frame.Cell{frame.Text(pressureName(row)), frame.Count(row.Weeks[0].Messages),
			share(row.Weeks[0].Messages, p.People[0].Weeks[0].Messages), before})
	}
	return t
}

// pressureLink returns a table cell that names a campaign, with a link to its page. If the API key of the visitor has a
// namespace, campaigns of other namespaces have no id and no link.
func pressureLink(m *api.PressureMessage) frame.Cell {
	if m.MessageID == "" {
		return frame.Text("campaigns of another team")
	}
	return frame.Titled(m.Title, m.MessageID, addressOf(m.MessageID, m.Namespace, m.Channel))
}

func pressureCampaigns(p *api.Pressure) *frame.Table {
	t := &frame.Table{
		Name: "campaigns", Caption: "Campaigns that use the most slots",
		Columns: []frame.Column{{Title: "Message"}, {Title: "Channel"}, {Title: "Team"},
			{Title: "Messages", Means: "all weeks", Number: true},
			{Title: "Last 7 days", Means: "messages", Number: true}, {Title: "Given back", Number: true},
			{Title: "Held back", Means: "people", Number: true}},
		Empty: "No messages in this time.",
	}
	for i := range p.Campaigns {
		c := &p.Campaigns[i]
		t.Rows = append(t.Rows, []frame.Cell{pressureLink(&c.PressureMessage), frame.Text(orNone(c.Channel)),
			frame.Text(orNone(c.Namespace)), frame.Count(pressureTotal(c.Messages)), frame.Count(c.Messages[0]),
			frame.Count(pressureTotal(c.Released)), frame.Count(pressureTotal(c.HeldBack))})
	}
	return t
}

func pressureHeld(p *api.Pressure) *frame.Table {
	t := &frame.Table{
		Name: "held-back", Caption: "Who took whose slots",
		Columns: []frame.Column{{Title: "Held back from"}, {Title: "Channel"}, {Title: "Team"},
			{Title: "People", Means: "held back", Number: true}, {Title: "Taken by"}, {Title: "Its team"},
			{Title: "Taken", Means: "people", Number: true}, {Title: "Share", Means: "percent", Number: true}},
		Empty: "Nobody was held back by a limit above 0 in this time.",
	}
	for i := range p.HeldBack {
		h := &p.HeldBack[i]
		begin := []frame.Cell{pressureLink(&h.PressureMessage), frame.Text(orNone(h.Channel)),
			frame.Text(orNone(h.Namespace)), frame.Count(h.Users)}
		if len(h.TakenBy) == 0 {
			t.Rows = append(t.Rows, append(begin, frame.Text("no large campaign"), frame.Text(""), frame.Count(0),
				share(0, h.Users)))
		}
		for k := range h.TakenBy[:min(len(h.TakenBy), pressureTakers)] {
			by := &h.TakenBy[k]
			t.Rows = append(t.Rows, append(slices.Clone(begin), pressureLink(&by.PressureMessage),
				frame.Text(orNone(by.Namespace)), frame.Count(by.Users), share(by.Users, h.Users)))
		}
	}
	return t
}
