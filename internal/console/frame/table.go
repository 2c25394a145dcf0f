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

// Table is a table on a console page, which visitors can also export as CSV.
type Table struct {
	Name    string // used in the address of the export: lower-case letters and hyphens
	Caption string // description of the rows
	Columns []Column
	Rows    [][]Cell // each row has one cell per column; the first cell names the row
	Empty   string   // text for an empty table, which says how to fill it
	// If Folded is true, the page shows only the caption of the table until the visitor opens the table. Folded is for
	// tables with the numbers of a chart.
	Folded bool

	page *content
}

// Column is a column of a table on a console page.
type Column struct {
	Title  string
	Means  string // unit or meaning of the numbers, below the title; "": the title is clear
	Number bool
}

// Cell is a cell of a table. The functions Text, Count, Number, Time and Link create cells.
type Cell struct {
	Text   string
	To     string    // address of a link; "": no link
	At     time.Time // time that the cell shows; zero: the cell shows Text
	Clock  bool      // show At as date and time of day, instead of relative to the visit
	Note   string    // smaller text after the text; not in the export
	number string    // number in the export; "": the cell is not a number
	id     string    // text in the export; "": Text
}

// Text returns a table cell with text.
func Text(text string) Cell { return Cell{Text: text} }

// Count returns a table cell with a whole number.
func Count[T int | int64 | uint64 | uint32](n T) Cell {
	return Cell{Text: number(int64(n)), number: strconv.FormatInt(int64(n), 10)}
}

// Number returns a table cell that shows a number with the given number of decimals.
func Number(n float64, digits int) Cell {
	text := strconv.FormatFloat(n, 'f', digits, 64)
	return Cell{Text: grouped(text), number: strconv.FormatFloat(n, 'g', -1, 64)}
}

// Time returns a table cell that shows a time relative to the visit, or "never" for the zero time.
func Time(at time.Time) Cell {
	if at.IsZero() {
		return Text("never")
	}
	return Cell{At: at}
}

// Clock returns a table cell that shows a time as date and time of day, for times in the future.
func Clock(at time.Time) Cell { return Cell{At: at, Clock: true} }

// The function Link returns a table cell with a link to an address of the console.
func Link(text, to string) Cell { return Cell{Text: text, To: to} }

// The function Titled returns a table cell with a link whose text is a title and an id. If the message has no title,
// the text of the link is only the id. The CSV export contains the id alone.
func Titled(title, id, to string) Cell {
	if title == "" {
		return Link(id, to)
	}
	return Cell{Text: title, To: to, Note: id, id: id}
}

// The method With returns a copy of the table cell with a note, which the page shows as smaller text after the cell's
// text.
func (c Cell) With(note string) Cell {
	c.Note = note
	return c
}

// CSV returns the address of the table's CSV export.
func (t *Table) CSV() string { return t.page.with("format", "csv", "table", t.Name) }

// The method When formats a time relative to the time of the visit, as HTML.
func (t *Table) When(at time.Time) template.HTML { return t.page.When(at) }

// Mark returns the id of the table's HTML element.
func (t *Table) Mark() string { return "table-" + t.Name }

// The method write writes the table as CSV according to RFC 4180.
func (t *Table) write(to io.Writer) error {
	w := csv.NewWriter(to)
	w.UseCRLF = true
	titles := make([]string, len(t.Columns))
	for i, column := range t.Columns {
		titles[i] = harmless(column.Title)
	}
	_ = w.Write(titles) // w.Error below returns the first error of all writes
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

// The function "harmless" adds a prefix to a text that a spreadsheet would interpret as a formula (OWASP, CSV
// Injection).
func harmless(text string) string {
	if strings.IndexAny(strings.TrimLeft(text, " "), "=+-@\t\r＝＋－＠") == 0 {
		return "'" + text
	}
	return text
}

// The method "with" returns the address of the page with the given query parameters added.
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

// The type "shown" is a table cell in the form that the templates need.
type shown struct {
	Cell
	When template.HTML // "": the cell is not a time
}

// The method Show converts a table cell to the form that the templates need. The method Show formats times relative to
// the time of the visit.
func (t *Table) Show(cell Cell) shown {
	if cell.At.IsZero() {
		return shown{Cell: cell}
	}
	if cell.Clock {
		return shown{cell, clock(cell.At)}
	}
	return shown{cell, t.page.When(cell.At)}
}

// If the name of a row has a word of at least longName characters, narrow screens may show the name shortened.
const longName = 18

// The method Cut reports whether narrow screens may show the name of a row shortened. The page lets visitors focus a
// shortened name, so that they can see it in full. If the name is a link, Cut returns false, because visitors can focus
// a link without further help of the page.
func (c Cell) Cut() bool {
	return c.To == "" && c.At.IsZero() && slices.ContainsFunc(strings.Fields(c.Text),
		func(word string) bool { return utf8.RuneCountInString(word) >= longName })
}

// IsNumber reports whether the table cell contains a number.
func (c Cell) IsNumber() bool { return c.number != "" }
