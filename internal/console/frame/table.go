package frame

import (
	"encoding/csv"
	"html/template"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Table is rows that people read, and that programs get as CSV.
type Table struct {
	Name    string // in the address of its export: lower-case letters and hyphens
	Caption string // what it counts, in words
	Columns []Column
	Rows    [][]Cell // as wide as Columns; the first cell names the row
	Empty   string   // what is said where there are no rows: what to do to fill it

	page *content
}

// Column is a column of a table.
type Column struct {
	Title  string
	Means  string // what its numbers count; shown below the title. "": the title says it
	Number bool
}

// Cell is one cell. It is made by Text, Count, Number, Time or Link.
type Cell struct {
	Text   string
	To     string    // where it leads; "": nowhere
	At     time.Time // shown as an instant, if not zero
	Note   string    // smaller, behind the text; not exported
	number string    // as programs read it; "": it is none
}

// Text is a cell of words.
func Text(text string) Cell { return Cell{Text: text} }

// Count is a cell of a whole number.
func Count[T int | int64 | uint64 | uint32](n T) Cell {
	return Cell{Text: number(int64(n)), number: strconv.FormatInt(int64(n), 10)}
}

// Number is a cell of a number, shown with so many digits behind the point.
func Number(n float64, digits int) Cell {
	text := strconv.FormatFloat(n, 'f', digits, 64)
	return Cell{Text: grouped(text), number: strconv.FormatFloat(n, 'g', -1, 64)}
}

// Time is a cell of an instant; zero: "never".
func Time(at time.Time) Cell {
	if at.IsZero() {
		return Text("never")
	}
	return Cell{At: at}
}

// Link is a cell of words that lead to an address of the console.
func Link(text, to string) Cell { return Cell{Text: text, To: to} }

// With is the cell with a note.
func (c Cell) With(note string) Cell {
	c.Note = note
	return c
}

// CSV is the address of the table's export.
func (t *Table) CSV() string { return t.page.with("format", "csv", "table", t.Name) }

// When is an instant as of the visit.
func (t *Table) When(at time.Time) template.HTML { return t.page.When(at) }

// Mark is what the table can be named by on its page.
func (t *Table) Mark() string { return "table-" + t.Name }

// write writes the table as CSV (RFC 4180).
func (t *Table) write(to io.Writer) error {
	w := csv.NewWriter(to)
	w.UseCRLF = true
	titles := make([]string, len(t.Columns))
	for i, column := range t.Columns {
		titles[i] = harmless(column.Title)
	}
	_ = w.Write(titles) // Error tells
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
	return harmless(c.Text)
}

// harmless is text that a spreadsheet does not take for a formula
// (OWASP, CSV Injection).
func harmless(text string) string {
	if strings.IndexAny(strings.TrimLeft(text, " "), "=+-@\t\r＝＋－＠") == 0 {
		return "'" + text
	}
	return text
}

// with is the page's address with parameters added.
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

// shown is a cell as a template shows it.
type shown struct {
	Cell
	When template.HTML // "": it is no instant
}

// Show is a cell as of the visit.
func (t *Table) Show(cell Cell) shown {
	if cell.At.IsZero() {
		return shown{Cell: cell}
	}
	return shown{cell, t.page.When(cell.At)}
}

// IsNumber reports whether the cell holds a number.
func (c Cell) IsNumber() bool { return c.number != "" }
