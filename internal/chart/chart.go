// Package chart draws the charts of the console as SVG, in light or dark colours: lines over time, areas, bars and
// columns.
//
// Package chart is the only package that uses the library github.com/go-analyze/charts. A chart with two series of 60
// values has about 20 kB, and takes 2 ms to draw. The chart library escapes text for XML, and writes colours and sizes
// as style attributes. Style attributes in an <img> element work under any content security policy of the page. The
// chart library refers to fonts by name, and loads no fonts. Package chart replaces two kinds of characters in names:
// characters that XML cannot contain, and characters that reverse the direction of text.
package chart

import (
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-analyze/charts"
)

// A Series is a named list of values in a chart, with one value for each label of the chart.
type Series struct {
	Name   string
	Values []float64
}

// A Picture holds the common properties of all kinds of charts, such as labels, unit and colours.
type Picture struct {
	Labels []string // labels of the values: times, or names of bars
	Dark   bool
	Slim   bool   // for phones, with less than half the width
	Unit   string // unit of the values, such as "decisions a second", shown at their axis; "": no unit
}

// These constants are the sizes of charts, in units of the SVG view box. Browsers scale charts with the page.
const (
	width     = 900
	height    = 260
	barHeight = 34

	columnsWidth  = 640
	columnsHeight = 240
	narrowWidth   = 380

	barPadding = 90
	textSize   = 11
	letter     = 7  // pixels for a letter in a wide font
	longest    = 40 // maximum number of characters in a name
)

// Lines draws each series as a line over time.
func Lines(p Picture, series []Series) ([]byte, error) { return p.lines(series, false) }

// Areas draws each series over time as an area. The areas are stacked.
func Areas(p Picture, series []Series) ([]byte, error) { return p.lines(series, true) }

func (p Picture) lines(series []Series, stacked bool) ([]byte, error) {
	opt := charts.NewLineChartOptionWithData(values(series))
	opt.Theme, opt.ValueFormatter = p.theme(), short
	opt.XAxis.Labels, opt.XAxis.LabelCount = p.instants()
	opt.XAxis.LabelFontStyle.FontSize = textSize
	opt.XAxis.BoundaryGap = charts.Ptr(false)
	opt.Symbol, opt.LineStrokeWidth = charts.Symbol{Shape: charts.SymbolNone}, 2
	opt.Legend.SeriesNames, opt.Legend.FontStyle.FontSize, opt.Legend.Symbol = roomy(names(series)), textSize,
		charts.SymbolSquare
	opt.YAxis = []charts.YAxisOption{p.valueAxis(series, stacked)}
	if stacked {
		opt.StackSeries, opt.FillOpacity = charts.Ptr(true), 140
	}
	painter := charts.NewPainter(charts.PainterOptions{OutputFormat: charts.ChartOutputSVG, Width: p.width(),
		Height: height})
	if err := painter.LineChart(opt); err != nil {
		return nil, err
	}
	return painter.Bytes()
}

// The method "width" returns the width of the chart in units of the SVG view box.
func (p Picture) width() int {
	if p.Slim {
		return narrowWidth
	}
	return width
}

// The method "instants" returns the labels of a chart's time axis, and the number of labels to show. A time axis has a
// label for each day of a week, for every four hours of a day, or for every ten minutes of an hour. The text of the
// last label ends at the edge of the chart; all other labels begin at their time. If the last label would overlap the
// previous label, the method removes the last label.
func (p Picture) instants() (labels []string, count int) {
	labels, count = clean(p.Labels), min(7, len(p.Labels))
	if n := len(labels); n > 7 && n < 60 && n%7 == 1 {
		count = 8
	}
	if p.Slim {
		count = min(count, 4)
		for i := range labels {
			labels[i], _, _ = strings.Cut(labels[i], " ") // only the day
		}
	}
	if last := len(labels) - 1; last > 0 && 2*letter*(len([]rune(labels[last]))+1) > (p.width()-100)/max(count-1, 1) {
		labels[last] = ""
	}
	return labels, count
}

// The function Bars draws a group of horizontal bars for each label, from top to bottom. In each group, Bars draws the
// bars of the series next to each other or stacked.
func Bars(p Picture, series []Series, stacked bool) ([]byte, error) {
	reversed := make([]Series, len(series)) // the library draws from bottom to top
	for i, s := range series {
		reversed[i] = Series{s.Name, backwards(s.Values)}
	}
	opt := charts.NewBarChartOptionWithData(values(reversed))
	opt.Horizontal, opt.Theme, opt.ValueFormatter = true, p.theme(), short
	opt.CategoryAxis.Labels, opt.CategoryAxis.LabelFontStyle.FontSize = backwards(roomy(clean(p.Labels))), textSize
	opt.ValueAxis = []charts.ValueAxisOption{p.valueAxis(series, stacked)}
	opt.Legend.SeriesNames, opt.Legend.FontStyle.FontSize, opt.Legend.Symbol = roomy(names(series)), textSize,
		charts.SymbolSquare
	if len(series) < 2 {
		opt.Legend.Show = charts.Ptr(false)
	}
	if stacked {
		opt.StackSeries = charts.Ptr(true)
	}
	painter := charts.NewPainter(charts.PainterOptions{
		OutputFormat: charts.ChartOutputSVG, Width: p.width(), Height: barPadding + barHeight*max(len(p.Labels), 1),
	})
	if err := painter.BarChart(opt); err != nil {
		return nil, err
	}
	return painter.Bytes()
}

// The function Columns draws a group of vertical bars for each label. In each group, Columns draws the bars of the
// series next to each other.
func Columns(p Picture, series []Series) ([]byte, error) {
	opt := charts.NewBarChartOptionWithData(values(series))
	opt.Theme, opt.ValueFormatter = p.theme(), short
	opt.CategoryAxis.Labels, opt.CategoryAxis.LabelFontStyle.FontSize = p.everyFew(), textSize
	opt.CategoryAxis.LabelCount = len(p.Labels)
	opt.ValueAxis = []charts.ValueAxisOption{p.valueAxis(series, false)}
	opt.Legend.SeriesNames, opt.Legend.FontStyle.FontSize, opt.Legend.Symbol = roomy(names(series)), textSize,
		charts.SymbolSquare
	size := charts.PainterOptions{OutputFormat: charts.ChartOutputSVG, Width: columnsWidth, Height: columnsHeight}
	if p.Slim {
		size.Width = narrowWidth
	}
	painter := charts.NewPainter(size)
	if err := painter.BarChart(opt); err != nil {
		return nil, err
	}
	return painter.Bytes()
}

// everyFew returns the labels below vertical bars, and omits labels at regular distances, so that the remaining labels
// do not overlap.
func (p Picture) everyFew() []string {
	room := 8
	if p.Slim {
		room = 5
	}
	labels, few := clean(p.Labels), (len(p.Labels)+room-1)/room
	for i := range labels {
		if i%max(few, 1) != 0 {
			labels[i] = ""
		}
	}
	return labels
}

// valueAxis returns the value axis of a chart. The axis begins at 0. If all values are 0, the axis ends at 1.
func (p Picture) valueAxis(series []Series, stacked bool) charts.ValueAxisOption {
	axis := charts.ValueAxisOption{Title: safe(p.Unit), Min: charts.Ptr(0.0), ValueFormatter: short}
	axis.LabelFontStyle.FontSize, axis.TitleFontStyle.FontSize = textSize, textSize
	if highest(series, stacked) == 0 {
		axis.Max = charts.Ptr(1.0)
	}
	return axis
}

func highest(series []Series, stacked bool) (most float64) {
	for _, s := range series {
		for _, v := range s.Values {
			most = max(most, v)
		}
	}
	return most
}

// The method "theme" returns the colours of charts: the colours of the console. Colours that are next to each other in
// a chart also differ in lightness.
func (p Picture) theme() charts.ColorPalette {
	hex := charts.ColorFromHex
	opt := charts.ThemeOption{
		AxisStrokeColor: hex("54616e"), AxisSplitLineColor: hex("dde2e7"), BackgroundColor: hex("ffffff"),
		TextColor: hex("1b2530"),
		SeriesColors: []charts.Color{hex("0b5fa5"), hex("d98200"), hex("a1161f"), hex("4a8f3c"), hex("7b4fa3"),
			hex("5aa9dd"), hex("8a5a00"), hex("54616e")},
	}
	if p.Dark {
		opt.IsDarkMode = true
		opt.AxisStrokeColor, opt.AxisSplitLineColor, opt.BackgroundColor, opt.TextColor = hex("a3b0bd"), hex("2b343e"),
			hex("12171d"), hex("e6ebf0")
		opt.SeriesColors = []charts.Color{hex("5ab0f0"), hex("f2b84b"), hex("ff8080"), hex("7fd897"), hex("c39ae8"),
			hex("2f7fc0"), hex("b98a2f"), hex("a3b0bd")}
	}
	return charts.MakeTheme(opt)
}

func values(series []Series) [][]float64 {
	list := make([][]float64, len(series))
	for i, s := range series {
		list[i] = s.Values
	}
	return list
}

func names(series []Series) []string {
	list := make([]string, len(series))
	for i, s := range series {
		list[i] = s.Name
	}
	return clean(list)
}

func clean(list []string) []string {
	out := make([]string, len(list))
	for i, text := range list {
		out[i] = safe(text)
	}
	return out
}

// The function "roomy" adds spaces after each label of a chart, because the browser's font may be wider than the font
// that the chart library measures.
func roomy(labels []string) []string {
	for i, text := range labels {
		labels[i] = text + strings.Repeat("\u00a0", 1+len([]rune(text))/7)
	}
	return labels
}

// The function "safe" replaces invisible characters, and characters that XML cannot contain, in a chart's text. The
// function "safe" also shortens the text to the available space.
func safe(text string) string {
	kept := strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) || unicode.Is(unicode.Bidi_Control, r) {
			return '·'
		}
		return r
	}, strings.ToValidUTF8(text, "·"))
	if runes := []rune(kept); len(runes) > longest {
		return string(runes[:longest-1]) + "…"
	}
	return kept
}

// The function "short" formats a number for an axis, for example as 1.5k or 2M.
func short(v float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(v) >= unit.size {
			return strconv.FormatFloat(math.Round(v/unit.size*100)/100, 'f', -1, 64) + unit.name
		}
	}
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}

func backwards[T any](list []T) []T {
	out := make([]T, len(list))
	for i, v := range list {
		out[len(list)-1-i] = v
	}
	return out
}
