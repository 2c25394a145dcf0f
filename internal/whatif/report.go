package whatif

import (
	_ "embed" // the page
	"encoding/base64"
	"fmt"
	"html/template"
	"io"

	"capper/client/api"
	"capper/internal/chart"
)

//go:embed page.html
var pageText string

// A picture is a chart in a light and a dark version, with a description of the chart in words.
type picture struct {
	Alt   string
	Light template.URL
	Dark  template.Srcset
}

// A part is a table of the HTML page, with the picture of the table, if any.
type part struct {
	Table
	Picture *picture
}

// pageView is the data that the template of the HTML page gets: the result of a replay.
type pageView struct {
	Title     string
	Sentences []string
	Parts     []part
}

// The function Page writes the result of a replay as one HTML page. The argument "what" of Page is the title of the
// page, such as the name of the file with the limits.
func Page(to io.Writer, what string, r *Result, campaigns int) error {
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return err
	}
	p := pageView{Title: what, Sentences: Sentences(r)}
	for _, table := range Tables(r, campaigns) {
		drawn, err := drawTable(&table, r)
		if err != nil {
			return fmt.Errorf("draw chart %q: %w", table.Title, err)
		}
		p.Parts = append(p.Parts, part{table, drawn})
	}
	return t.Execute(to, p)
}

// mostBars is the maximum number of bars in a picture of a table. The table beside the picture shows all rows, even
// rows without a bar.
const mostBars = 20

// drawTable draws a bar chart of a table. If the chart would show nothing, drawTable returns nil.
func drawTable(t *Table, r *Result) (*picture, error) {
	var labels []string
	before, after := chart.Series{Name: "as recorded"}, chart.Series{Name: "under these limits"}
	add := func(name string, b, a int64) {
		if len(labels) < mostBars || t.Title == "Sends a day" {
			labels, before.Values, after.Values = append(labels, name), append(before.Values, float64(b)),
				append(after.Values, float64(a))
		}
	}
	list := map[string][]api.WhatIfRow{"Sends a day": r.Days, "By segment": r.Segments, "By channel": r.Channels,
		"By campaign": named(r.Campaigns)}[t.Title]
	for i := range list {
		add(list[i].Name, list[i].Before.Sends, list[i].After.Sends)
	}
	unit := "sends"
	switch t.Title {
	case "Denials by limit":
		unit = "denials"
		for _, c := range r.Limits {
			add(c.Name, c.Before, c.After)
		}
	case "Users by what changes for them":
		return drawUsers(r.Users)
	}
	if len(labels) == 0 || t.Title == "Sends a day" && len(labels) == 1 {
		return nil, nil
	}
	alt := fmt.Sprintf("%s, as recorded and under these limits, for %d of the rows of the table below", t.Title,
		len(labels))
	return both(alt, labels, unit, func(p chart.Picture) ([]byte, error) {
		if t.Title == "Sends a day" {
			return chart.Lines(p, []chart.Series{before, after})
		}
		return chart.Bars(p, []chart.Series{before, after}, false)
	})
}

func drawUsers(u api.WhatIfUsers) (*picture, error) {
	var labels []string
	counts := chart.Series{Name: "users"}
	for _, step := range u.By[:min(mostBars, len(u.By))] {
		labels, counts.Values = append(labels, signed(step.More)), append(counts.Values, float64(step.Users))
	}
	if len(labels) == 0 {
		return nil, nil
	}
	return both("Users by the change in their number of sends, as in the table below", labels, "users",
		func(p chart.Picture) ([]byte, error) {
			return chart.Bars(p, []chart.Series{counts}, false)
		})
}

func both(alt string, labels []string, unit string, draw func(chart.Picture) ([]byte, error)) (*picture, error) {
	light, err := draw(chart.Picture{Labels: labels, Unit: unit})
	if err != nil {
		return nil, err
	}
	dark, err := draw(chart.Picture{Labels: labels, Unit: unit, Dark: true})
	if err != nil {
		return nil, err
	}
	return &picture{Alt: alt, Light: template.URL(inline(light)), Dark: template.Srcset(inline(dark))}, nil
}

// The function "inline" returns an SVG picture as a data URL.
func inline(svg []byte) string {
	return "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(svg)
}
