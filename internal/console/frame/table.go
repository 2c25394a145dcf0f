package frame

import (
	"cmp"
	"encoding/csv"
	"html/template"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Table is a table for a page and for its CSV export.
type Table struct {
	Name    string // part of the export's address: lower-case letters and hyphens
	Caption string // the counted things, in words
	Columns []Column
	Rows    [][]Cell // as wide as Columns; the first cell names the row
	Empty   string   // text of an empty table: how to fill it
	// Folded: the page shows only the caption until the visitor opens the table. Use it for the numbers of a picture.
	Folded bool

	page *content
}

// Column is a column of a table.
type Column struct {
	Title  string
	Means  string // meaning of the numbers, shown below the title; "": the title is sufficient
	Number bool
}

// Cell is a cell of a table. Text, Count, Number, Time and Link create cells.
type Cell struct {
	Text   string
	To     string    // address of the link; "": none
	At     time.Time // shown as an instant, if not zero
	Clock  bool      // show At as date and time of day, and not relative to the visit
	Note   string    // smaller, behind the text; not exported
	number string    // the value for programs; "": the cell is no number
	id     string    // exported in place of Text; "": Text is
}

// Text returns a cell with text.
func Text(text string) Cell { return Cell{Text: text} }

// Count returns a cell with a whole number.
func Count[T int | int64 | uint64 | uint32](n T) Cell {
	return Cell{Text: number(int64(n)), number: strconv.FormatInt(int64(n), 10)}
}

// Number returns a cell with a number, shown with the given number of decimals.
func Number(n float64, digits int) Cell {
	text := strconv.FormatFloat(n, 'f', digits, 64)
	return Cell{Text: grouped(text), number: strconv.FormatFloat(n, 'g', -1, 64)}
}

// Time returns a cell with a time; the zero time is shown as "never".
func Time(at time.Time) Cell {
	if at.IsZero() {
		return Text("never")
	}
	return Cell{At: at}
}

// Clock returns a cell with a time that is shown as date and time of day, for plans.
func Clock(at time.Time) Cell { return Cell{At: at, Clock: true} }

// Link returns a cell with text that links to an address of the console.
func Link(text, to string) Cell { return Cell{Text: text, To: to} }

// Titled returns a link whose text is a title and an id, or only the id if there is no title. The export has the id.
func Titled(title, id, to string) Cell {
	if title == "" {
		return Link(id, to)
	}
	return Cell{Text: title, To: to, Note: id, id: id}
}

// With returns a copy of the cell with a note.
func (c Cell) With(note string) Cell {
	c.Note = note
	return c
}

// CSV returns the address of the table's CSV export.
func (t *Table) CSV() string { return t.page.with("format", "csv", "table", t.Name) }

// When returns a time relative to the visit.
func (t *Table) When(at time.Time) template.HTML { return t.page.When(at) }

// Mark returns the HTML id of the table.
func (t *Table) Mark() string { return "table-" + t.Name }

// write writes the table as CSV (RFC 4180).
func (t *Table) write(to io.Writer) error {
	w := csv.NewWriter(to)
	w.UseCRLF = true
	titles := make([]string, len(t.Columns))
	for i, column := range t.Columns {
		titles[i] = harmless(column.Title)
	}
	_ = w.Write(titles) // Error returns the error of all writes
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = cell.exported()
		}
		_ = w.Write(cells)
	}
	w.Flush()
	return w.Error()
}

func (c Cell) exported() string {
	switch {
	case c.number != "":
		return c.number
	case !c.At.IsZero():
		return c.At.UTC().Format(time.RFC3339)
	}
	return harmless(cmp.Or(c.id, c.Text))
}

// harmless returns the text with a prefix if a spreadsheet would interpret it as a formula (OWASP, CSV Injection).
func harmless(text string) string {
	if strings.IndexAny(strings.TrimLeft(text, " "), "=+-@\t\r＝＋－＠") == 0 {
		return "'" + text
	}
	return text
}

// with returns the page's address with added parameters.
func (c *content) with(pairs ...string) string {
	at, err := url.Parse(c.at)
	if err != nil {
		return c.at
	}
	query := at.Query()
	for i := 0; i+1 < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
	}
	at.RawQuery = query.Encode()
	return at.String()
}

// shown is a cell in the form that templates use.
type shown struct {
	Cell
	When template.HTML // "": the cell is no time
}

// Show returns a cell in the form that templates use, with times relative to the visit.
func (t *Table) Show(cell Cell) shown {
	if cell.At.IsZero() {
		return shown{Cell: cell}
	}
	if cell.Clock {
		return shown{cell, clock(cell.At)}
	}
	return shown{cell, t.page.When(cell.At)}
}

// longName is the length, in characters, from which narrow screens may shorten a word of a name.
const longName = 18

// Cut reports whether narrow screens shorten the name of a row. Such a name can get the focus, and then shows in full.
// A link gets the focus in any case.
func (c Cell) Cut() bool {
	return c.To == "" && c.At.IsZero() && slices.ContainsFunc(strings.Fields(c.Text),
		func(word string) bool { return utf8.RuneCountInString(word) >= longName })
}

// IsNumber reports whether the cell holds a number.
func (c Cell) IsNumber() bool { return c.number != "" }
