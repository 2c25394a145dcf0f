package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"capper/internal/bitmap"
)

// A writer writes the user ids of one segment to a file. A writer is not safe for concurrent use.
type writer interface {
	Add(id uint32) error
	// Close writes the buffered ids. Close does not close the file.
	Close() error
}

// fileName returns the default name for the file with a segment's user ids in the given format.
func fileName(segment, format string) string {
	if format == "text" {
		return segment + ".txt"
	}
	return segment + "." + format
}

// newWriter returns a writer of user ids for one of the file formats "text" (one id per line), "csv" (user_id,segment),
// "parquet" (user_id) and "roaring".
func newWriter(to io.Writer, format, segment string) (writer, error) {
	out := bufio.NewWriterSize(to, 1<<20)
	switch format {
	case "text":
		return &lineWriter{out: out, spell: spellDense, end: "\n"}, nil
	case "csv":
		_, err := out.WriteString("user_id,segment\n")
		return &lineWriter{out: out, spell: spellDense, end: "," + segment + "\n"}, err
	case "parquet":
		return &parquetWriter{
			out: out, rows: make([]row, 0, 1<<12), file: parquet.NewGenericWriter[row](out,
				parquet.MaxRowsPerRowGroup(1<<20)),
		}, nil
	case "roaring":
		return &bitmapWriter{out: out, set: new(bitmap.Set)}, nil
	}
	return nil, fmt.Errorf("unknown format %q", format)
}

type lineWriter struct {
	out   *bufio.Writer
	spell func(dst []byte, user uint32) []byte
	end   string
	line  []byte
}

func (w *lineWriter) Add(id uint32) error {
	w.line = append(w.spell(w.line[:0], id), w.end...)
	_, err := w.out.Write(w.line)
	return err
}

func (w *lineWriter) Close() error { return w.out.Flush() }

// A row is a row of a Parquet file of user ids. The name of the type row becomes the name of the Parquet schema.
type row struct {
	UserID int64 `parquet:"user_id,snappy"`
}

type parquetWriter struct {
	out  *bufio.Writer
	file *parquet.GenericWriter[row]
	rows []row // not yet written
}

func (w *parquetWriter) Add(id uint32) error {
	if w.rows = append(w.rows, row{int64(id)}); len(w.rows) == cap(w.rows) {
		return w.flush()
	}
	return nil
}

func (w *parquetWriter) flush() error {
	_, err := w.file.Write(w.rows)
	w.rows = w.rows[:0]
	return err
}

func (w *parquetWriter) Close() error { return errors.Join(w.flush(), w.file.Close(), w.out.Flush()) }

type bitmapWriter struct {
	out *bufio.Writer
	set *bitmap.Set
}

func (w *bitmapWriter) Add(id uint32) error {
	w.set.Add(id)
	return nil
}

func (w *bitmapWriter) Close() error {
	_, err := w.out.Write(w.set.Bitmap().Bytes())
	return errors.Join(err, w.out.Flush())
}
