package frame

import (
	"bytes"
	"cmp"
	"net/http"
	"strconv"
)

// The method export responds to a visitor with a table of the console page as CSV.
func (f *Frame) export(w http.ResponseWriter, c *content, name string) {
	table := c.Table(name)
	if table == nil {
		f.fail(w, c, refused(http.StatusNotFound, "This page does not contain this table.",
			"Open the page and use the CSV link there."))
		return
	}
	var out bytes.Buffer
	if err := table.write(&out); err != nil {
		f.fail(w, c, err)
		return
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="capper-`+table.Name+`.csv"`)
	w.Header().Set("Content-Length", strconv.Itoa(out.Len()))
	_, _ = w.Write(out.Bytes()) // a write error means that the client has disconnected
}

// The constant "drawn" is the content security policy of responses with a chart. A browser can open a chart as a
// separate document; this document needs only its own style sheet.
const drawn = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"

// The method draw responds to a visitor with a chart of the console page as SVG.
func (f *Frame) draw(w http.ResponseWriter, c *content, name string, dark, narrow bool) {
	picture := c.Picture(name)
	if picture == nil {
		f.fail(w, c, refused(http.StatusNotFound, "This page does not contain this chart.", "Open the page again."))
		return
	}
	draw := picture.Draw
	if narrow && picture.Slim != nil {
		draw = picture.Slim
	}
	out, err := draw(dark)
	if err != nil {
		f.fail(w, c, err)
		return
	}
	w.Header().Set("Content-Security-Policy", drawn)
	w.Header().Set("Content-Type", "image/svg+xml")
	w.Header().Set("Content-Length", strconv.Itoa(len(out)))
	_, _ = w.Write(out) // a write error means that the client has disconnected
}

// pictureStep is the number of seconds for which a browser may cache a chart.
const pictureStep = 10

// Title returns the caption of the chart. If the chart has no caption, Title returns the description of the chart.
func (p *Picture) Title() string { return cmp.Or(p.Caption, p.Alt) }

// The method At returns the address of the chart for light mode.
func (p *Picture) At() string { return p.at("light", "") }

// The method Dark returns the address of the chart for dark mode.
func (p *Picture) Dark() string { return p.at("dark", "") }

// Phone returns the address of the chart for phones in light mode.
func (p *Picture) Phone() string { return p.at("light", "1") }

// DarkPhone returns the address of the chart for phones in dark mode.
func (p *Picture) DarkPhone() string { return p.at("dark", "1") }

// HasSlim reports whether the chart has a narrow version for phones.
func (p *Picture) HasSlim() bool { return p.Slim != nil }

func (p *Picture) at(theme, narrow string) string {
	step := p.page.Visit.Now.Unix() / pictureStep
	pairs := []string{"format", "svg", "picture", p.Name, "theme", theme, "v", strconv.FormatInt(step, 36)}
	if narrow != "" {
		pairs = append(pairs, "narrow", narrow)
	}
	return p.page.with(pairs...)
}
