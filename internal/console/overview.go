package console

import (
	"fmt"
	"slices"
	"time"

	"capper/client/api"
	"capper/internal/chart"
	"capper/internal/console/frame"
)

// overviewPage returns the page with the state of the service and its recent decisions.
func overviewPage(counts *Series) frame.Page {
	return frame.Page{
		Path: "", Nav: "Overview", Live: true, Template: "overview.html", Files: files,
		Show: func(v *frame.Visit) (*frame.View, error) { return showOverview(v, counts) },
	}
}

// overview is the data of the page's template.
type overview struct {
	States  []state
	Figures []figure
	Since   time.Time // when counting began
	Any     bool      // something was decided within the day
}

// figure is a number in large print with its meaning.
type figure struct{ Number, Means string }

// The pictures use these step lengths.
const (
	hourStep = 10 // seconds
	dayStep  = 5  // minutes
)

func showOverview(v *frame.Visit, counts *Series) (*frame.View, error) {
	status, err := v.API.Status(v.Context())
	if err != nil {
		return nil, err
	}
	hour, day := counts.Hour(1), counts.Day(dayStep)
	names := decided(day, hour)
	return &frame.View{
		Title:    "Overview",
		Question: "Is everything working, and what was decided recently?",
		Data: overview{
			States: states(status, v.Now), Figures: figures(hour, day), Since: day.Since, Any: len(names) > 0,
		},
		Pictures: []*frame.Picture{
			decisions("hour", "the last hour", counts.Hour(hourStep), names), decisions("day", "the last day", day,
				names),
		},
		Tables: []*frame.Table{decidedTable(hour, day, names)},
		Calls:  []string{"GET /v1/status", "GET /metrics"},
	}, nil
}

// outcomes lists the kinds of decisions in the order in which the picture stacks them.
var outcomes = []Kind{Allowed, replayed, Denied, Unavailable}

// decided returns the names of the decisions counted within the windows, by kind. Denials are sorted by count, the
// largest first.
func decided(windows ...*Window) (names []Name) {
	for _, w := range windows {
		for name := range w.Counts {
			if slices.Contains(outcomes, name.Kind) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.SortFunc(names, func(a, b Name) int {
		if by := slices.Index(outcomes, a.Kind) - slices.Index(outcomes, b.Kind); by != 0 {
			return by
		}
		if by := windows[0].Sum(b) - windows[0].Sum(a); by != 0 {
			return int(max(-1, min(1, by)))
		}
		if a.Of < b.Of {
			return -1
		}
		return 1
	})
	return names
}

// words describes a name in words.
func words(name Name) string {
	switch name.Kind {
	case Allowed:
		return "allowed"
	case replayed:
		return "allowed before"
	case Unavailable:
		return "unavailable"
	}
	return "held back by " + heldBackBy(name.Of)
}

// heldBackBy describes in words the limit that denied users.
func heldBackBy(limit string) string {
	switch limit {
	case api.LimitSuppressed:
		return "suppression"
	case api.LimitHoldout:
		return "the holdout"
	case api.LimitQuiet:
		return "quiet hours"
	}
	return limit
}

// means explains the counts of a name.
func means(name Name) string {
	switch name.Kind {
	case Allowed:
		return "may receive the message; the send is recorded"
	case replayed:
		return "retried after they were allowed; counted once"
	case Unavailable:
		return "could not be decided: try again"
	}
	switch name.Of {
	case api.LimitSuppressed:
		return "are in a suppressed set"
	case api.LimitHoldout:
		return "are in the control group that receives nothing"
	case api.LimitQuiet:
		return "are in quiet hours"
	}
	return "have reached this limit"
}

// nowSeconds is the number of seconds over which the current rate is averaged.
const nowSeconds = 10

func figures(hour, day *Window) []figure {
	rate := 0.0
	for name, counts := range hour.Counts {
		if slices.Contains(outcomes, name.Kind) {
			for _, n := range counts[len(counts)-nowSeconds:] {
				rate += n / nowSeconds
			}
		}
	}
	sum := func(w *Window, kinds ...Kind) string {
		total := 0.0
		for name := range w.Counts {
			if slices.Contains(kinds, name.Kind) {
				total += w.Sum(name)
			}
		}
		return frame.Whole(total)
	}
	return []figure{
		{frame.PerSecond(rate), fmt.Sprintf("users decided per second, in the last %d seconds", nowSeconds)},
		{sum(hour, Allowed), "sends allowed in the last hour"},
		{sum(hour, Denied), "users held back in the last hour, counted in each call"},
		{sum(hour, Unavailable), "users who could not be decided in the last hour"},
		{sum(day, Allowed), "sends allowed in the last day"},
		{sum(day, Denied), "users held back in the last day, counted in each call"},
	}
}

// shownLimits is the number of limits that a picture shows separately. The other limits are combined.
const shownLimits = 5

// decisions draws the picture of a window.
func decisions(name, span string, w *Window, names []Name) *frame.Picture {
	series := seriesOf(w, names)
	return &frame.Picture{
		Name: name, Caption: "Users decided a second over " + span + ", by outcome; times are in UTC. The table " +
			"below has the numbers.",
		Alt: "Users decided a second over " + span + ", by outcome. " + summary(w, names),
		Draw: func(dark bool) ([]byte, error) {
			return chart.Areas(chart.Picture{Labels: clockLabels(w), Dark: dark, Unit: "users a second"}, series)
		},
	}
}

func seriesOf(w *Window, names []Name) (series []chart.Series) {
	var others []float64
	limits := 0
	for _, name := range names {
		rates := w.PerSecond(name)
		if len(rates) == 0 {
			rates = make([]float64, w.Steps)
		}
		if name.Kind == Denied {
			if limits++; limits > shownLimits {
				others = plus(others, rates)
				continue
			}
		}
		series = append(series, chart.Series{Name: words(name), Values: rates})
	}
	if others != nil {
		series = append(series, chart.Series{Name: "held back by others", Values: others})
	}
	return series
}

func plus(a, b []float64) []float64 {
	if a == nil {
		return slices.Clone(b)
	}
	for i := range a {
		a[i] += b[i]
	}
	return a
}

// clockLabels returns the times of a window's steps in UTC.
func clockLabels(w *Window) []string {
	labels := make([]string, w.Steps)
	for i := range labels {
		labels[i] = w.Start.Add(time.Duration(i) * w.Step).UTC().Format("15:04")
	}
	return labels
}

// summary describes a window in a sentence, for people who cannot see the picture.
func summary(w *Window, names []Name) string {
	var parts []string
	for _, name := range names {
		if n := w.Sum(name); n > 0 {
			parts = append(parts, frame.Whole(n)+" "+words(name))
		}
	}
	if parts == nil {
		return "No user was decided."
	}
	return frame.List(parts) + "."
}

func decidedTable(hour, day *Window, names []Name) *frame.Table {
	t := &frame.Table{
		Name: "decided", Caption: "Users by decision, in calls that record",
		Columns: []frame.Column{
			{Title: "Outcome"}, {Title: "Means"}, {Title: "Last hour", Means: "users, counted in each call",
				Number: true},
			{Title: "Last day", Means: "users, counted in each call", Number: true},
			{Title: "Of the day", Means: "percent of all decisions", Number: true},
		},
		Empty: "This instance decided no user in the last day. Users are decided by POST /v1/filter and capper " +
			"filter.",
	}
	all := 0.0
	for _, name := range names {
		all += day.Sum(name)
	}
	for _, name := range names {
		share := frame.Text("")
		if all > 0 {
			share = frame.Number(100*day.Sum(name)/all, 1)
		}
		t.Rows = append(t.Rows, []frame.Cell{
			frame.Text(words(name)), frame.Text(means(name)), frame.Count(int64(hour.Sum(name))),
			frame.Count(int64(day.Sum(name))), share,
		})
	}
	return t
}
