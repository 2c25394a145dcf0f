package console

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"capper/client"
	"capper/client/api"
	"capper/internal/chart"
	"capper/internal/console/frame"
)

// overviewPage returns the console page about the state of the service and its recent decisions.
func overviewPage() frame.Page {
	return frame.Page{Path: "", Nav: "Overview", Live: true, Template: "overview.html", Files: files,
		Show: showOverview}
}

// The type overview is the data for the template of the page about the state of the service and its recent decisions.
type overview struct {
	Condition condition
	Says      string // summary of the last day in sentences
	Why       string // reason why the page shows no numbers; "": it shows numbers
	Figures   []figure
	Any       bool // the day has at least one decision
}

// A figure is a number that a page shows in large print, with the meaning of the number.
type figure struct {
	Number, Means string
	Before        string // the number one week before, in words
}

func showOverview(v *frame.Visit) (*frame.View, error) {
	status, err := v.API.Status(v.Context())
	if err != nil {
		return nil, err
	}
	data := overview{Condition: conditionOf(states(status, v.Now))}
	view := &frame.View{Title: "Overview", Question: "Is everything working, and what was decided recently?",
		Calls: []string{"GET /v1/status"}}
	if status.Store.State == "down" {
		data.Why = "The store does not answer, so the numbers of the last day cannot be read now."
		view.Data = data
		return view, nil
	}
	day, err := dayOf(v)
	switch {
	case client.HasCode(err, client.CodeUnavailable), client.HasCode(err, client.CodeTimeout):
		data.Why = "The store did not answer in time, so the numbers of the last day cannot be read now."
	case client.HasCode(err, client.CodeConflict):
		data.Why = "This service does not count decisions."
	case err != nil:
		return nil, err
	default:
		data.Says, data.Figures, data.Any = day.says(), day.figures(), day.sum.Asked > 0
		view.Pictures = []*frame.Picture{day.hours(), day.compared(), day.minutes(v.Now)}
		view.Tables = []*frame.Table{day.outcomes(), day.table()}
		view.Calls = append(view.Calls, "GET /v1/activity?since="+day.from.Format(time.RFC3339),
			"GET /v1/activity?since="+day.from.Add(-week).Format(time.RFC3339)+"&until="+
				v.Now.UTC().Add(-week).Format(time.RFC3339))
	}
	view.Data = data
	return view, nil
}

const (
	week     = 7 * 24 * time.Hour
	dayHours = 24
	minutes5 = 5 * time.Minute
)

// The type activity holds the counts of decisions of all instances for the last 24 hours, and for the same hours one
// week before. The last hour of the counts is not complete.
type activity struct {
	from        time.Time // beginning of the first hour
	now, before [dayHours]api.ActivityHour
	sum         api.ActivityHour
	// The fields allowed and denied are sums over the same hours one week before. From the hour that corresponds to the
	// current hour, the sums include only the minutes up to now.
	allowed, denied int64
}

// dayOf reads from the API the counts of decisions of the last day.
func dayOf(v *frame.Visit) (*activity, error) {
	now := v.Now.UTC()
	day := &activity{from: now.Truncate(time.Hour).Add(-(dayHours - 1) * time.Hour)}
	found, err := v.API.Activity(v.Context(), day.from, now)
	if err != nil {
		return nil, err
	}
	before, err := v.API.Activity(v.Context(), day.from.Add(-week), now.Add(-week))
	if err != nil {
		return nil, err
	}
	day.sum.Denied = map[string]int64{}
	for _, hour := range found.Hours {
		if i := int(hour.At.Sub(day.from) / time.Hour); i >= 0 && i < dayHours {
			day.now[i] = hour
			day.add(&hour)
		}
	}
	for _, hour := range before.Hours {
		i := int(hour.At.Sub(day.from.Add(-week)) / time.Hour)
		if i < 0 || i >= dayHours {
			continue
		}
		day.before[i] = hour
		for _, part := range hour.Parts {
			if part.At.Before(now.Add(-week)) {
				day.allowed, day.denied = day.allowed+part.Allowed, day.denied+part.Denied
			}
		}
	}
	return day, nil
}

func (d *activity) add(hour *api.ActivityHour) {
	d.sum.Calls += hour.Calls
	d.sum.Asked += hour.Asked
	d.sum.Allowed += hour.Allowed
	d.sum.Replayed += hour.Replayed
	d.sum.Unavailable += hour.Unavailable
	for limit, n := range hour.Denied {
		d.sum.Denied[limit] += n
	}
}

// The method "says" describes the decisions of the last day in sentences.
func (d *activity) says() string {
	if d.sum.Asked == 0 {
		return "No user was decided in the last 24 hours. Engines ask with POST /v1/filter or capper filter."
	}
	text := fmt.Sprintf("%s allowed in the last 24 hours%s.", were(d.sum.Allowed, "send"), d.than())
	if held := overall(d.sum.Denied); held > 0 {
		most := mostFirst(d.sum.Denied)[0]
		text += fmt.Sprintf(" %s held back, %s by %s.", were(held, "user"),
			percentOf(d.sum.Denied[most], held), heldBackBy(most))
	}
	return text + " A user in two calls counts twice."
}

// The method "than" returns a text that compares the number of sends in the last day with the number one week before.
func (d *activity) than() string {
	switch change := float64(d.sum.Allowed-d.allowed) / float64(max(d.allowed, 1)) * 100; {
	case d.allowed == 0:
		return ", and none is counted in the same hours a week before"
	case change >= 1:
		return fmt.Sprintf(", %.0f %% more than in the same hours a week before", change)
	case change <= -1:
		return fmt.Sprintf(", %.0f %% fewer than in the same hours a week before", -change)
	}
	return ", as many as in the same hours a week before"
}

func were(n int64, what string) string {
	if n == 1 {
		return "1 " + what + " was"
	}
	return frame.Count(n).Text + " " + what + "s were"
}

func percentOf(part, whole int64) string {
	return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(whole))
}

func (d *activity) figures() []figure {
	before := func(n int64) string { return frame.Count(n).Text + " a week before" }
	list := []figure{
		{frame.Count(d.sum.Allowed).Text, "sends allowed", before(d.allowed)},
		{frame.Count(overall(d.sum.Denied)).Text, "users held back", before(d.denied)},
		{frame.Count(d.sum.Replayed).Text, "users of retries, allowed before", ""},
	}
	if d.sum.Unavailable > 0 {
		list = append(list, figure{frame.Count(d.sum.Unavailable).Text, "users who could not be decided", ""})
	}
	return list
}

// The type "columns" is a column chart over time, with a sum for each series.
type columns struct {
	name, title string
	labels      []string
	series      []chart.Series
}

// The method picture returns the column chart as a Picture that a page can show.
func (c columns) picture() *frame.Picture {
	var sums []string
	for _, s := range c.series {
		sum := 0.0
		for _, n := range s.Values {
			sum += n
		}
		sums = append(sums, frame.Whole(sum)+" "+s.Name)
	}
	caption := c.title + ": " + frame.List(sums) + ". Times are in UTC."
	draw := func(narrow bool) func(dark bool) ([]byte, error) {
		return func(dark bool) ([]byte, error) {
			return chart.Columns(chart.Picture{Labels: c.labels, Dark: dark, Slim: narrow}, c.series)
		}
	}
	return &frame.Picture{Name: c.name, Caption: caption, Alt: caption, Draw: draw(false), Slim: draw(true)}
}

// The method "hours" returns a chart of the allowed sends and the denied users in each hour.
func (d *activity) hours() *frame.Picture {
	allowed, denied := chart.Series{Name: "sends allowed"}, chart.Series{Name: "users held back"}
	for i := range d.now {
		allowed.Values = append(allowed.Values, float64(d.now[i].Allowed))
		denied.Values = append(denied.Values, float64(overall(d.now[i].Denied)))
	}
	return columns{"day", "The last 24 hours, by hour", d.labels(), []chart.Series{allowed, denied}}.picture()
}

// The method "compared" returns a chart of the sends in each hour and in the same hour one week before.
func (d *activity) compared() *frame.Picture {
	now, before := chart.Series{Name: "sends now"}, chart.Series{Name: "in the same hours a week before"}
	for i := range d.now {
		now.Values = append(now.Values, float64(d.now[i].Allowed))
		before.Values = append(before.Values, float64(d.before[i].Allowed))
	}
	return columns{"week", "Sends by hour", d.labels(), []chart.Series{now, before}}.picture()
}

// The method "labels" returns, as texts for the charts, the beginning of each hour.
func (d *activity) labels() []string {
	labels := make([]string, dayHours)
	for i := range labels {
		labels[i] = d.from.Add(time.Duration(i) * time.Hour).Format("15:04")
	}
	return labels
}

// The method "minutes" returns a chart of the decisions of the last hour in steps of five minutes.
func (d *activity) minutes(now time.Time) *frame.Picture {
	const parts = int(time.Hour / minutes5)
	from := now.UTC().Truncate(minutes5).Add(-time.Hour + minutes5)
	labels := make([]string, parts)
	allowed := chart.Series{Name: "sends allowed", Values: make([]float64, parts)}
	denied := chart.Series{Name: "users held back", Values: make([]float64, parts)}
	for i := range labels {
		labels[i] = from.Add(time.Duration(i) * minutes5).Format("15:04")
	}
	for _, hour := range d.now[dayHours-2:] {
		for _, part := range hour.Parts {
			if i := int(part.At.Sub(from) / minutes5); !part.At.Before(from) && i < parts {
				allowed.Values[i] += float64(part.Allowed)
				denied.Values[i] += float64(part.Denied)
			}
		}
	}
	return columns{"hour", "The last hour, by five minutes", labels, []chart.Series{allowed, denied}}.picture()
}

// The method "outcomes" returns a table of the decisions of the last day, by outcome.
func (d *activity) outcomes() *frame.Table {
	t := &frame.Table{
		Name: "decided", Caption: "Decisions of the last 24 hours",
		Columns: []frame.Column{{Title: "Outcome"}, {Title: "Users", Means: "counted in each call", Number: true},
			{Title: "Of all", Means: "%", Number: true}, {Title: "They"}},
		Empty: "No user was decided in the last 24 hours.",
	}
	add := func(name, means string, n int64) {
		if n > 0 {
			t.Rows = append(t.Rows, []frame.Cell{frame.Text(name), frame.Count(n), share(n, d.sum.Asked),
				frame.Text(means)})
		}
	}
	add("allowed", "may receive the message; the send is recorded", d.sum.Allowed)
	add("allowed before", "were allowed by an earlier call; a retry counts once", d.sum.Replayed)
	for _, limit := range mostFirst(d.sum.Denied) {
		add("held back by "+heldBackBy(limit), means(limit), d.sum.Denied[limit])
	}
	add("not decided", "got no answer from the store; the engine tries again", d.sum.Unavailable)
	return t
}

// The method table returns a table with the numbers that the charts show, by hour.
func (d *activity) table() *frame.Table {
	t := &frame.Table{
		Name: "hours", Caption: "The numbers by hour", Folded: true,
		Columns: []frame.Column{{Title: "Hour"}, {Title: "Asked", Means: "users", Number: true},
			{Title: "Allowed", Means: "sends", Number: true}, {Title: "Held back", Means: "users", Number: true},
			{Title: "Allowed", Means: "a week before", Number: true},
			{Title: "Held back", Means: "a week before", Number: true}},
	}
	for i := range d.now {
		now, before := &d.now[i], &d.before[i]
		t.Rows = append(t.Rows, []frame.Cell{frame.Clock(d.from.Add(time.Duration(i) * time.Hour)),
			frame.Count(now.Asked), frame.Count(now.Allowed), frame.Count(overall(now.Denied)),
			frame.Count(before.Allowed), frame.Count(overall(before.Denied))})
	}
	return t
}

// heldBackBy returns the words with which the page names the limit or rule that denied users a message.
func heldBackBy(limit string) string {
	return cmp.Or(reasons[limit].name, limit)
}

// The function "means" returns a text that explains denials by the limit or rule.
func means(limit string) string {
	return cmp.Or(reasons[limit].means, "had reached this limit")
}

// The variable "reasons" contains a name and an explanation for each reason, other than a limit, for which users are
// denied.
var reasons = map[string]struct{ name, means string }{
	api.LimitSuppressed: {"suppression", "are in a suppressed set"},
	api.LimitHoldout:    {"the holdout", "are in the control group that receives nothing"},
	api.LimitQuiet:      {"quiet hours", "were in quiet hours"},
}

// clockLabels returns the labels of a chart's time axis: the beginning of each step of the window, as a time of day in
// UTC.
func clockLabels(w *Window) []string {
	labels := make([]string, w.Steps)
	for i := range labels {
		labels[i] = w.Start.Add(time.Duration(i) * w.Step).UTC().Format("15:04")
	}
	return labels
}

// These constants are the lengths of the steps on the time axes of the pacer charts.
const (
	hourStep = 10 // seconds
	dayStep  = 5  // minutes
)

// mostFirst returns the names in the map "counts", sorted by their counts, the highest count first.
func mostFirst(counts map[string]int64) []string {
	names := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	return names
}
