package chart_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/chart"
)

// hostile lists dangerous names that a message may have.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, "]]><svg onload=alert(1)>", "&lt;&#x41;",
	"a\x00b\x1b[31m", "\u202egnp.exe", "\xff\xfe",
	strings.Repeat("é", 128), "",
}

func TestPicturesHoldHostileNamesAsText(t *testing.T) {
	t.Parallel()
	for _, draw := range []func(chart.Picture, []chart.Series) ([]byte, error){
		chart.Lines, chart.Areas,
		func(p chart.Picture, s []chart.Series) ([]byte, error) { return chart.Bars(p, s, false) },
		func(p chart.Picture, s []chart.Series) ([]byte, error) { return chart.Bars(p, s, true) },
	} {
		for _, name := range hostile {
			svg, err := draw(chart.Picture{Labels: []string{name, "b", "c"}, Unit: name},
				[]chart.Series{{name, []float64{1, 2, 3}}, {"other", []float64{0, 0, 1}}})
			require.NoError(t, err)
			requireInert(t, svg)
		}
	}
}

// requireInert requires that svg is well-formed and contains only drawing elements.
func requireInert(t *testing.T, svg []byte) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(string(svg)))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err, "%s", svg)
		if element, ok := token.(xml.StartElement); ok {
			require.Contains(t, []string{"svg", "path", "text", "circle", "rect", "g"}, element.Name.Local)
			for _, attr := range element.Attr {
				require.NotContains(t, strings.ToLower(attr.Name.Local), "on", "an event handler")
				require.NotEqual(t, "href", attr.Name.Local)
			}
		}
	}
}

func TestPicturesOfNothingAndOfMuch(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 60, 1440} {
		labels, flat, steep := make([]string, n), make([]float64, n), make([]float64, n)
		for i := range n {
			labels[i], steep[i] = fmt.Sprintf("%02d:%02d", i/60, i%60), float64(i)*1e5
		}
		for _, dark := range []bool{false, true} {
			svg, err := chart.Areas(chart.Picture{Labels: labels, Dark: dark}, []chart.Series{{"none", flat},
				{"many", steep}})
			require.NoError(t, err)
			requireInert(t, svg)
			require.Less(t, len(svg), 150_000)
		}
	}
}

// TestInstantsStandApart checks that labels of times have equal distances and never overlap.
func TestInstantsStandApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		labels int
		format string
		step   time.Duration
		want   []string
	}{
		{29, "Mon 15:04", 6 * time.Hour, []string{"Mon 09:00", "Tue 09:00", "Wed 09:00", "Thu 09:00", "Fri 09:00",
			"Sat 09:00", "Sun 09:00"}},
		{288, "15:04", 5 * time.Minute, []string{"09:00", "13:00", "17:00", "21:00", "00:55", "04:55", "08:55"}},
		{2, "15:04", time.Minute, []string{"09:00", "09:01"}},
		{1, "15:04", time.Minute, []string{"09:00"}},
	} {
		labels := make([]string, c.labels)
		for i := range labels {
			labels[i] = time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC).Add(time.Duration(i) * c.step).Format(c.format)
		}
		svg, err := chart.Lines(chart.Picture{Labels: labels}, []chart.Series{{"a", make([]float64, c.labels)}})
		require.NoError(t, err)
		require.Equal(t, c.want, regexp.MustCompile(`(?:[A-Z][a-z]{2} )?\d\d:\d\d`).FindAllString(string(svg), -1))
	}
}
