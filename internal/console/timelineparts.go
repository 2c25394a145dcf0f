package console

import "fmt"

// Top returns the y position of the first row.
func (t *timeline) Top() int { return top }

// RowsHeight returns the height of all rows.
func (t *timeline) RowsHeight() int { return t.Floor - top }

// DayY returns the y position of the labels with days.
func (t *timeline) DayY() int { return t.Floor + 16 }

// HourY returns the y position of the labels with hours.
func (t *timeline) HourY() int { return t.Floor + 32 }

// pair returns light in light mode and dark in dark mode.
func (t *timeline) pair(light, dark string) string {
	if t.Dark {
		return dark
	}
	return light
}

// Text returns the colour of texts in the chart.
func (t *timeline) Text() string { return t.pair("#1b2530", "#e6ebf0") }

// Quieter returns the colour of the time axis.
func (t *timeline) Quieter() string { return t.pair("#54616e", "#a3b0bd") }

// Link returns the colour of sends and of slots that become free.
func (t *timeline) Link() string { return t.pair("#0b5fa5", "#5ab0f0") }

// Bad returns the colour of denials.
func (t *timeline) Bad() string { return t.pair("#a1161f", "#ff8080") }

// Good returns the fill colour of a window with free slots.
func (t *timeline) Good() string { return t.pair("#e6f4ea", "#14301d") }

// GoodLine returns the line colour of a window with free slots.
func (t *timeline) GoodLine() string { return t.pair("#1a6b32", "#7fd897") }

// Warn returns the fill colour of a full window.
func (t *timeline) Warn() string { return t.pair("#fff4dc", "#362a10") }

// WarnLine returns the line colour of a full window.
func (t *timeline) WarnLine() string { return t.pair("#7a4b00", "#f2c46b") }

// nameRoom is the maximum number of characters of a name in the chart.
const nameRoom = 16

// Short returns the name of the row, shortened to nameRoom characters.
func (r row) Short() string {
	if name := []rune(r.Name); len(name) > nameRoom {
		return string(name[:nameRoom-1]) + "…"
	}
	return r.Name
}

// Base returns the y position of the text in the row.
func (r row) Base() int { return r.Center + 4 }

// BandY returns the y position of the upper edge of the window.
func (r row) BandY() int { return r.Center - 9 }

// CrossY returns the y position of a cross, which marks a denial.
func (r row) CrossY() int { return r.Center - 5 }

// LabelX returns the x position at which the label of the window ends.
func (r row) LabelX() float64 { return max(r.Window.X+r.Window.Width-6, r.left+48) }

// FreesX returns the x position at which a slot becomes free. If the position is outside the chart, FreesX returns "".
func (r row) FreesX() string {
	if r.Frees == nil {
		return ""
	}
	return fmt.Sprintf("%.1f", *r.Frees)
}

// Left returns the x position of a cross, which marks a denial.
func (d dot) Left() string { return fmt.Sprintf("%.1f", d.X-5) }
