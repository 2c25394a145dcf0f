package format

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
)

// bounded reads a text and returns an error if a row is longer than maxLine. The CSV parser keeps one
// row in memory as a whole, even if an unclosed quote makes the row very long.
type bounded struct {
	from io.Reader
	read int64 // bytes returned so far
	rows int64 // bytes that belong to complete rows
	line int   // line in which the last complete row ends
}

// piece is the maximum size of one Read, and therefore the number of bytes by which a row may exceed
// maxLine undetected.
const piece = 64 << 10

// ends records that the parser has completed a row, which is not empty.
func (b *bounded) ends(r *csv.Reader, row []string) {
	b.rows = r.InputOffset()
	line, _ := r.FieldPos(len(row) - 1)
	b.line = line + strings.Count(row[len(row)-1], "\n")
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.read-b.rows > maxLine+piece {
		return 0, fmt.Errorf("line %d: a row has more than %d bytes, or a quote is never closed", b.line+1, maxLine)
	}
	n, err := b.from.Read(p[:min(len(p), piece)])
	b.read += int64(n)
	return n, err
}
