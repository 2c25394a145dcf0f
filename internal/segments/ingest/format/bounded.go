package format

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
)

// bounded reads a text of rows and fails where a row is longer than maxLine: what takes rows apart
// keeps the whole of one in memory, however long a quote that is never closed makes it.
type bounded struct {
	from io.Reader
	read int64 // bytes that were given
	rows int64 // of them those of rows that were taken
	line int   // where the last of these ends
}

// piece is how much is given at once, and so how far beyond maxLine a row may go unseen.
const piece = 64 << 10

// ends says that a row was taken, which is not empty.
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
