package console

import "fmt"

// Top, RowsHeight, DayY and HourY are measures of the picture.
func (t *timeline) Top() int { return top }

// RowsHeight is that of all rows.
func (t *timeline) RowsHeight() int { return t.Floor - top }

// DayY is where days are written.
func (t *timeline) DayY() int { return t.Floor + 16 }

// HourY is where hours are written.
func (t *timeline) HourY() int { return t.Floor + 32 }

// pair is one of two colours.
func (t *timeline) pair(light, dark string) string {
	if t.Dark {
		return dark
	}
	return light
}

// Text is the colour of words.
func (t *timeline) Text() string { return t.pair("#1b2530", "#e6ebf0") }

// Quieter is the colour of the axis.
func (t *timeline) Quieter() string { return t.pair("#54616e", "#a3b0bd") }

// Link is the colour of sends, and of slots that free.
func (t *timeline) Link() string { return t.pair("#0b5fa5", "#5ab0f0") }

// Bad is the colour of what was held back.
func (t *timeline) Bad() string { return t.pair("#a1161f", "#ff8080") }

// Good and GoodLine are a window with room.
func (t *timeline) Good() string { return t.pair("#e6f4ea", "#14301d") }

// GoodLine is its edge.
func (t *timeline) GoodLine() string { return t.pair("#1a6b32", "#7fd897") }

// Warn and WarnLine are a window that is full.
func (t *timeline) Warn() string { return t.pair("#fff4dc", "#362a10") }

// WarnLine is its edge.
func (t *timeline) WarnLine() string { return t.pair("#7a4b00", "#f2c46b") }

// nameRoom is how many characters of a name there is room for.
const nameRoom = 16

// Short is the name as far as there is room.
func (r row) Short() string {
	if name := []rune(r.Name); len(name) > nameRoom {
		return string(name[:nameRoom-1]) + "…"
	}
	return r.Name
}

// Base is where words of the row stand.
func (r row) Base() int { return r.Center + 4 }

// BandY is where its window begins.
func (r row) BandY() int { return r.Center - 9 }

// CrossY is where a cross begins.
func (r row) CrossY() int { return r.Center - 5 }

// LabelX is where what is in the window ends.
func (r row) LabelX() float64 { return max(r.Window.X+r.Window.Width-6, left+48) }

// FreesX is where a slot frees; "": not in the picture.
func (r row) FreesX() string {
	if r.Frees == nil {
		return ""
	}
	return fmt.Sprintf("%.1f", *r.Frees)
}

// Left is where a cross begins.
func (d dot) Left() string { return fmt.Sprintf("%.1f", d.X-5) }
