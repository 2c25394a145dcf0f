package archive

import (
	"bufio"
	"errors"
	"io"

	"github.com/parquet-go/parquet-go"

	"capper/internal/audit"
)

// parquetRows writes rows to a Parquet file.
type parquetRows struct {
	out  *bufio.Writer
	file *parquet.GenericWriter[Row]
	wait []Row // rows that are not written yet
	rows int64
}

// rowsOfGroup is the number of rows that are kept in memory before they are written as one row group.
const rowsOfGroup = 1 << 17

func newTable(to io.Writer) *parquetRows {
	out := bufio.NewWriterSize(to, 1<<20)
	return &parquetRows{out: out, wait: make([]Row, 0, 1<<10), file: parquet.NewGenericWriter[Row](out,
		parquet.MaxRowsPerRowGroup(rowsOfGroup))}
}

func (t *parquetRows) Add(r *audit.Record, channel string) error {
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

func (t *parquetRows) flush() error {
	_, err := t.file.Write(t.wait)
	t.wait = t.wait[:0]
	return err
}

func (t *parquetRows) Rows() int64 { return t.rows }

func (t *parquetRows) Close() error { return errors.Join(t.flush(), t.file.Close(), t.out.Flush()) }
