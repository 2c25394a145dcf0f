package format

import "fmt"

// A Multiline describes the rows of a file that span several lines, because of a quoted field or an escaped line break.
// A row that spans a few lines usually contains an address. If a row spans many lines, usually a quote is missing, so
// that the row contains other rows.
type Multiline struct {
	Rows    int64 `json:"rows"`
	Lines   int64 `json:"lines"`         // lines of all such rows
	Longest int64 `json:"longest_lines"` // lines of the longest row
	At      int64 `json:"longest_row"`   // line where the longest row begins
}

// Note counts one row that spans several lines.
func (m *Multiline) Note(row, lines int64) {
	m.Add(Multiline{Rows: 1, Lines: lines, Longest: lines, At: row})
}

// Add adds the counts of another block of the same file. The blocks may arrive in any order. If several rows are
// equally long, Add keeps the row that comes first in the file.
func (m *Multiline) Add(other Multiline) {
	m.Rows += other.Rows
	m.Lines += other.Lines
	if other.Longest > m.Longest || other.Longest == m.Longest && other.At < m.At {
		m.Longest, m.At = other.Longest, other.At
	}
}

func (m Multiline) String() string {
	return fmt.Sprintf("%d, the longest of %d lines at line %d", m.Rows, m.Longest, m.At)
}
