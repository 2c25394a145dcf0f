package console

import "fmt"

// Top returns the y position of the first row of the timeline chart.
func (t *timeline) Top() int { return top }

// RowsHeight returns the height of all rows of the timeline chart together.
func (t *timeline) RowsHeight() int { return t.Floor - top }

// DayY returns the y position of the day labels below the timeline chart.
func (t *timeline) DayY() int { return t.Floor + 16 }

// HourY returns the y position of the hour labels below the timeline chart.
func (t *timeline) HourY() int { return t.Floor + 32 }

// The method pair returns the argument "light" for a chart in light mode, and the argument "dark" for a chart in dark
// mode.
func (t *timeline) pair(light, dark string) string {
	if t.Dark {
		return dark
	}
	return light
}

// Text returns the colour of texts in the timeline chart.
func (t *timeline) Text() string { return t.pair("#1b2530", "#e6ebf0") }

// The method Quieter returns the colour of the time axis in the timeline chart.
func (t *timeline) Quieter() string { return t.pair("#54616e", "#a3b0bd") }

// The method Link returns the colour, in the timeline chart, of sends and of the times at which a limit allows a
// further send.
func (t *timeline) Link() string { return t.pair("#0b5fa5", "#5ab0f0") }

// The method Bad returns the colour of denials in the timeline chart.
func (t *timeline) Bad() string { return t.pair("#a1161f", "#ff8080") }

// The method Good returns the fill colour for the window of a limit that still has free slots (allows further sends).
func (t *timeline) Good() string { return t.pair("#e6f4ea", "#14301d") }

// GoodLine returns the line colour for the window of a limit that still has free slots (allows further sends).
func (t *timeline) GoodLine() string { return t.pair("#1a6b32", "#7fd897") }

// The method Warn returns the fill colour for the window of a limit that has no free slots (allows no further send).
func (t *timeline) Warn() string { return t.pair("#fff4dc", "#362a10") }

// WarnLine returns the line colour for the window of a limit that has no free slots (allows no further send).
func (t *timeline) WarnLine() string { return t.pair("#7a4b00", "#f2c46b") }

// nameRoom is the maximum number of characters of a row's name in the timeline chart.
const nameRoom = 16

// The method Short returns the name of the chart row, shortened to nameRoom characters.
func (r row) Short() string {
	if name := []rune(r.Name); len(name) > nameRoom {
		return string(name[:nameRoom-1]) + "…"
	}
	return r.Name
}

// Base returns the y position of the text in a row of the timeline chart.
func (r row) Base() int { return r.Center + 4 }

// BandY returns the y position of the upper edge of the bar that shows a limit's window in the timeline chart.
func (r row) BandY() int { return r.Center - 9 }

// CrossY returns the y position, in a row of the timeline chart, of the crosses that mark denials.
func (r row) CrossY() int { return r.Center - 5 }

// LabelX returns the x position, in the timeline chart, at which the label of a limit's window ends.
func (r row) LabelX() float64 { return max(r.Window.X+r.Window.Width-6, r.left+48) }

// FreesX returns the x position, in the timeline chart, of the time at which the limit allows a further send. If the
// limit allows no further send within the period of the chart, FreesX returns "".
func (r row) FreesX() string {
	if r.Frees == nil {
		return ""
	}
	return fmt.Sprintf("%.1f", *r.Frees)
}

// The method Left returns the x position of the left edge of a cross that marks a denial in the timeline chart.
func (d dot) Left() string { return fmt.Sprintf("%.1f", d.X-5) }
