package console

import (
	"maps"
	"slices"

	"capper/client/api"
	"capper/internal/chart"
	"capper/internal/console/frame"
)

// Picture returns a chart of the forecast over time. For each time, the chart divides the users into those who may
// receive the message then, those who may receive it later, and all others.
func (o *Outlook) Picture(name string) *frame.Picture {
	labels := make([]string, len(o.Points))
	series := []chart.Series{{Name: "may receive"}, {Name: "held back by limits"}, {Name: "quiet hours"},
		{Name: "suppressed or held out"}}
	for i, p := range o.Points {
		labels[i] = p.At.UTC().Format("Mon 15:04")
		for j, of := range [...]func(s *api.Summary) int{allowed, byLimits,
			func(s *api.Summary) int { return s.Denied[api.LimitQuiet] },
			func(s *api.Summary) int { return s.Denied[api.LimitSuppressed] + s.Denied[api.LimitHoldout] },
		} {
			series[j].Values = append(series[j].Values, float64(o.count(i, of)))
		}
	}
	draw := func(narrow bool) func(dark bool) ([]byte, error) {
		return func(dark bool) ([]byte, error) {
			return chart.Areas(chart.Picture{Labels: labels, Dark: dark, Slim: narrow, Unit: "users"}, shown(series))
		}
	}
	return &frame.Picture{Name: name, Alt: o.Alt(), Draw: draw(false), Slim: draw(true)}
}

// The function "shown" returns the series that a chart draws: the first series, and every other series that has a
// number above 0.
func shown(series []chart.Series) []chart.Series {
	return slices.DeleteFunc(slices.Clone(series), func(s chart.Series) bool {
		return s.Name != series[0].Name && slices.Max(s.Values) == 0
	})
}

func byLimits(s *api.Summary) (users int) {
	for limit, n := range s.Denied {
		if limit != api.LimitQuiet && limit != api.LimitSuppressed && limit != api.LimitHoldout {
			users += n
		}
	}
	return users
}

// Table returns a table with the numbers that the chart of the forecast shows. The table of the forecast has a row
// for a time only if a number changes at this time.
func (o *Outlook) Table(name, caption string) *frame.Table {
	counted := "users"
	if o.Sampled() {
		counted = "users, scaled from a sample"
	}
	t := &frame.Table{
		Name: name, Caption: caption,
		Columns: []frame.Column{{Title: "From", Means: "until the next line"},
			{Title: "May receive", Means: counted, Number: true}},
		Empty: "The audience has no users.",
	}
	limits := map[string]bool{}
	for _, p := range o.Points {
		for limit := range p.Summary.Denied {
			limits[limit] = true
		}
	}
	names := slices.Sorted(maps.Keys(limits))
	for _, limit := range names {
		t.Columns = append(t.Columns, frame.Column{Title: "Held back by " + limit, Means: counted, Number: true})
	}
	for i, p := range o.Points {
		if i > 0 && sameCounts(&o.Points[i-1].Summary, &p.Summary) {
			continue
		}
		row := []frame.Cell{frame.Clock(p.At), frame.Count(o.count(i, allowed))}
		for _, limit := range names {
			row = append(row, frame.Count(o.count(i, func(s *api.Summary) int { return s.Denied[limit] })))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// sameCounts reports whether two summaries of decisions have equal numbers of allowed users and of denied users by
// limit.
func sameCounts(a, b *api.Summary) bool {
	return a.Allowed == b.Allowed && maps.Equal(a.Denied, b.Denied)
}
