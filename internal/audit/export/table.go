package export

import (
	"bufio"
	"errors"
	"io"

	"github.com/parquet-go/parquet-go"

	"capper/internal/audit"
)

// table is a Parquet file.
type table struct {
	out  *bufio.Writer
	file *parquet.GenericWriter[Row]
	wait []Row // not written yet
	rows int64
}

// rowsOfGroup is what is in memory before it is written.
const rowsOfGroup = 1 << 17

func newTable(to io.Writer) *table {
	out := bufio.NewWriterSize(to, 1<<20)
	return &table{out: out, wait: make([]Row, 0, 1<<10), file: parquet.NewGenericWriter[Row](out,
		parquet.MaxRowsPerRowGroup(rowsOfGroup))}
}

func (t *table) Add(r *audit.Record, channel string) error {
	for i := range r.Groups {
		row := RowOf(r, &r.Groups[i], channel)
		for user := range r.Groups[i].Users.All() {
			row.UserID = int64(user)
			t.rows++
			if t.wait = append(t.wait, row); len(t.wait) == cap(t.wait) {
				if err := t.flush(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (t *table) flush() error {
	_, err := t.file.Write(t.wait)
	t.wait = t.wait[:0]
	return err
}

func (t *table) Rows() int64 { return t.rows }

func (t *table) Close() error { return errors.Join(t.flush(), t.file.Close(), t.out.Flush()) }
