package console

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"capper/client"
	"capper/client/api"
	"capper/internal/chart"
	"capper/internal/console/frame"
)

// pacersPage returns the console page about pacers, which shows the permitted and the actual rates of calls to
// providers.
func pacersPage(counts *Series) frame.Page {
	return frame.Page{
		Path: "pacers", Nav: "Pacers", Live: true, Template: "pacers.html", Files: files,
		Show: func(v *frame.Visit) (*frame.View, error) { return showPacers(v, counts) },
	}
}

// pacersView is the data for the template of the page about pacers.
type pacersView struct {
	*Window
	Divided []string // names of the pacers that count each message or key separately
	Pacer   string   // name of the pacer about which the visitor asks for one message or key
	Log     string   // id of the message, or key; "": the visitor has not asked for one
	Wrong   string   // reason why the service returned no state for the message or key
}

func showPacers(v *frame.Visit, counts *Series) (*frame.View, error) {
	pacers, err := v.API.Pacers(v.Context())
	if err != nil {
		return nil, err
	}
	hour, day := counts.Hour(1), counts.Day(dayStep)
	page := &pacersView{Window: day, Pacer: v.URL.Query().Get("pacer"), Log: v.URL.Query().Get("log")}
	view := &frame.View{
		Title:    "Pacers",
		Question: "How fast may messages be handed to providers, and who is waiting?",
		Data:     page,
		Tables: []*frame.Table{pacersTable(pacers.Pacers), pacerLimits(pacers.Pacers), permits(pacers.Pacers, hour,
			day)},
		Calls: []string{"GET /v1/pacers"},
	}
	if len(pacers.Pacers) > 0 {
		view.Pictures = []*frame.Picture{granted(pacers.Pacers, counts.Hour(hourStep))}
	}
	for _, p := range pacers.Pacers {
		if p.Per != "" {
			page.Divided = append(page.Divided, p.Name)
		}
	}
	if page.Log == "" {
		return view, nil
	}
	return view, page.addLog(v, view, pacers.Pacers)
}

// addLog adds the state of the pacer for one message or key to the view.
func (p *pacersView) addLog(v *frame.Visit, view *frame.View, pacers []api.PacerState) error {
	i := slices.IndexFunc(pacers, func(s api.PacerState) bool { return s.Name == p.Pacer && s.Per != "" })
	if i < 0 {
		p.Wrong, view.Status = fmt.Sprintf("%q is no pacer that counts each message or key separately.", p.Pacer),
			http.StatusBadRequest
		return nil
	}
	message, key, query := p.Log, "", "?message_id="
	if pacers[i].Per == api.PerKey {
		message, key, query = "", p.Log, "?key="
	}
	state, err := v.API.PacerLog(v.Context(), p.Pacer, message, key)
	if refused := (*client.Error)(nil); errors.As(err, &refused) && refused.Status < 500 {
		p.Wrong, view.Status = refused.Message, refused.Status
		return nil
	}
	if err != nil {
		return err
	}
	view.Tables = append(view.Tables, logTable(state))
	view.Calls = append(view.Calls, "GET /v1/pacers/"+url.PathEscape(p.Pacer)+query+url.QueryEscape(p.Log))
	return nil
}

// logTable returns a table with the state of a pacer for one message or key: a row for each limit and for the rate.
func logTable(p *api.PacerState) *frame.Table {
	one := *p
	one.Per = ""
	t := &frame.Table{
		Name: "log", Caption: "State of the pacer " + p.Name + " for " + cmp.Or(p.MessageID, p.Key),
		Columns: []frame.Column{
			{Title: "Limit"}, {Title: "In use", Means: "permits in the window, including future ones", Number: true},
			{Title: "At most", Means: "permits in any window"},
			{Title: "Queue", Means: "seconds until the last granted permit", Number: true},
			{Title: "Next", Means: "seconds until a new permit may be used", Number: true}, {Title: "State"},
		},
	}
	add := func(limit string, used, most frame.Cell) {
		t.Rows = append(t.Rows, []frame.Cell{frame.Text(limit), used, most, millis(one, p.QueueMS),
			millis(one, p.NextMS), frame.Text(standing(one))})
	}
	for _, l := range p.Limits {
		used := frame.Text("")
		if l.Used != nil {
			used = frame.Count(*l.Used)
		}
		add(l.Window, used, frame.Count(l.Max))
	}
	if p.Rate != "" {
		add("rate", frame.Text(""), frame.Text(p.Rate))
	}
	return t
}

func pacersTable(pacers []api.PacerState) *frame.Table {
	t := &frame.Table{
		Name: "pacers", Caption: "State of the pacers",
		Columns: []frame.Column{
			{Title: "Pacer"}, {Title: "State"}, {Title: "Rate", Means: "permits, as configured"},
			{Title: "Queue", Means: "seconds until the last granted permit", Number: true},
			{Title: "Next", Means: "seconds until a new permit may be used", Number: true},
			{Title: "Fullest limit", Means: "percent in use", Number: true},
			{Title: "Longest wait", Means: "permits with a longer wait are refused"},
		},
		Empty: "The configuration has no pacers. Add pacers under the key pacers to share the rate of a provider " +
			"among all senders.",
	}
	shared := slices.ContainsFunc(pacers, func(p api.PacerState) bool { return len(p.Shares) > 0 })
	if shared {
		t.Columns = append(t.Columns, frame.Column{Title: "Shares", Means: "parts reserved for some calls"})
	}
	for _, p := range pacers {
		used := frame.Text("")
		if p.Used != nil && p.Max > 0 {
			used = frame.Number(100*float64(*p.Used)/float64(p.Max), 1).With(fmt.Sprintf("%d of %d in %s", *p.Used,
				p.Max, p.Window))
		}
		row := []frame.Cell{
			frame.Text(p.Name), frame.Text(standing(p)), frame.Text(orNone(p.Rate)), millis(p, p.QueueMS),
			millis(p, p.NextMS), used, frame.Text(orNone(p.MaxWait)),
		}
		if shared {
			row = append(row, frame.Text(orNone(sharesText(p.Shares))))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// sharesText lists the shares of a pacer with their percentages.
func sharesText(shares []api.PacerShare) string {
	var parts []string
	for _, share := range shares {
		parts = append(parts, fmt.Sprintf("%s %d %%", share.Name, share.Percent))
	}
	return strings.Join(parts, ", ")
}

// The function "standing" returns a text with the state of a pacer (such as free, busy or full) and the wait for the
// next permit.
func standing(p api.PacerState) string {
	next := time.Duration(p.NextMS)
	switch {
	case p.Unavailable:
		return "unavailable: the store cannot read its permits"
	case p.Per == api.PerMessage:
		return "one queue per message: look one up above"
	case p.Per == api.PerKey:
		return "one queue per key: look one up above"
	case next <= 0:
		return "free: the next permit needs no wait"
	case p.Used != nil && p.Max > 0 && *p.Used >= p.Max:
		return "full: the next permit waits " + frame.Span(next)
	case next < time.Second:
		return "in use"
	}
	return "busy: the next permit waits " + frame.Span(next)
}

func millis(p api.PacerState, ms api.Millis) frame.Cell {
	if p.Per != "" || p.Unavailable {
		return frame.Text("")
	}
	return frame.Number(time.Duration(ms).Seconds(), 1)
}

func pacerLimits(pacers []api.PacerState) *frame.Table {
	t := &frame.Table{
		Name: "limits", Caption: "Limits of the pacers",
		Columns: []frame.Column{
			{Title: "Pacer"}, {Title: "Window"}, {Title: "In use", Means: "permits in the window, including future " +
				"ones",
				Number: true}, {Title: "At most", Means: "permits in any window", Number: true},
		},
		Empty: "No pacer has limits in addition to its rate.",
	}
	for _, p := range pacers {
		for _, l := range p.Limits {
			used := frame.Text("by " + p.Per)
			switch {
			case p.Unavailable:
				used = frame.Text("unavailable")
			case l.Used != nil:
				used = frame.Count(*l.Used)
			}
			t.Rows = append(t.Rows, []frame.Cell{frame.Text(p.Name), frame.Text(l.Window), used, frame.Count(l.Max)})
		}
	}
	return t
}

func permits(pacers []api.PacerState, hour, day *Window) *frame.Table {
	t := &frame.Table{
		Name: "permits", Caption: "Permits requested from this instance",
		Columns: []frame.Column{
			{Title: "Pacer"}, {Title: "Granted, last hour", Means: "permits", Number: true},
			{Title: "Refused, last hour", Means: "permits that would have waited too long", Number: true},
			{Title: "Granted, last day", Means: "permits", Number: true}, {Title: "Refused, last day",
				Means: "permits that would have waited too long", Number: true},
			{Title: "Failed, last day", Means: "calls that the store did not answer", Number: true},
		},
		Empty: "No pacers are configured.",
	}
	for _, p := range pacers {
		count := func(w *Window, kind Kind) frame.Cell {
			return frame.Count(int64(w.Sum(Name{Kind: kind, Of: p.Name})))
		}
		t.Rows = append(t.Rows, []frame.Cell{
			frame.Text(p.Name), count(hour, Granted), count(hour, refused), count(day, Granted),
			count(day, refused), count(day, failed),
		})
	}
	return t
}

// The function "granted" returns a chart of the permits that pacers granted and refused over the last hour.
func granted(pacers []api.PacerState, hour *Window) *frame.Picture {
	var series []chart.Series
	var said []string
	for _, p := range pacers {
		for _, kind := range []Kind{Granted, refused} {
			name := Name{Kind: kind, Of: p.Name}
			if sum := hour.Sum(name); sum > 0 {
				series = append(series, chart.Series{Name: p.Name + " " + string(kind), Values: hour.PerSecond(name)})
				said = append(said, frame.Whole(sum)+" "+string(kind)+" of "+p.Name)
			}
		}
	}
	if series == nil {
		series, said = []chart.Series{{Name: "none", Values: make([]float64, hour.Steps)}}, []string{"None"}
	}
	slices.Sort(said)
	return &frame.Picture{
		Name: "granted", Caption: "Permits granted and refused per second by this instance, by pacer; times are in " +
			"UTC. The table below has the numbers.",
		Alt: "Permits per second of this instance over the last hour, granted and refused. " + frame.List(said) + ".",
		Draw: func(dark bool) ([]byte, error) {
			return chart.Lines(chart.Picture{Labels: clockLabels(hour), Dark: dark, Unit: "permits a second"}, series)
		},
	}
}
