package archive

import (
	"bufio"
	"errors"
	"io"

	"github.com/parquet-go/parquet-go"

	"capper/internal/audit"
	"capper/internal/capping"
)

// parquetRows exports audit records to a Parquet file. The column with the user holds numbers for dense ids (32-bit
// numbers), and texts for other ids.
type parquetRows[ID int64 | string] struct {
	out  *bufio.Writer
	file *parquet.GenericWriter[row[ID]]
	id   func(user capping.UserID) ID
	wait []row[ID] // rows that are not written yet
	rows int64
}

// rowsOfGroup is the maximum number of rows in a row group of the Parquet file.
const rowsOfGroup = 1 << 17

func newTable[ID int64 | string](to io.Writer, id func(user capping.UserID) ID) *parquetRows[ID] {
	out := bufio.NewWriterSize(to, 1<<20)
	schema := parquet.NewSchema("Row", parquet.SchemaOf(new(row[ID])))
	return &parquetRows[ID]{out: out, id: id, wait: make([]row[ID], 0, 1<<10),
		file: parquet.NewGenericWriter[row[ID]](out, schema, parquet.MaxRowsPerRowGroup(rowsOfGroup))}
}

func (t *parquetRows[ID]) Add(r *audit.Record, channel string) error {
	for i := range r.Groups {
		row := rowOf[ID](r, &r.Groups[i], channel)
		for user := range r.Groups[i].All() {
			row.UserID = t.id(user)
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

func (t *parquetRows[ID]) flush() error {
	_, err := t.file.Write(t.wait)
	t.wait = t.wait[:0]
	return err
}

func (t *parquetRows[ID]) Rows() int64 { return t.rows }

func (t *parquetRows[ID]) Close() error { return errors.Join(t.flush(), t.file.Close(), t.out.Flush()) }
