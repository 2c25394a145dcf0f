package format

import "fmt"

// Multiline tells of rows that span several lines, because of a quoted field or
// an escaped line break. Few and short ones are somebody's address; a long one is
// mostly a quote that is missing, with other people's rows inside.
type Multiline struct {
	Rows    int64 `json:"rows"`
	Lines   int64 `json:"lines"`         // of them all
	Longest int64 `json:"longest_lines"` // of the longest
	At      int64 `json:"longest_row"`   // the line where it begins
}

// Note counts one row.
func (m *Multiline) Note(row, lines int64) {
	m.Add(Multiline{Rows: 1, Lines: lines, Longest: lines, At: row})
}

// Add joins what was seen elsewhere in the file. The first of the longest is
// named, whatever the order of the blocks.
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
