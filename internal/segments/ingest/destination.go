package ingest

import (
	"capper/internal/bitmap"
	"capper/internal/segments/ingest/format"
)

// destination is where rows go: one set, or one set per segment of a table.
type destination interface {
	isTable() bool
	// newSink is for one worker. The names are nil unless this is a table's.
	newSink() (sink, format.Names)
	// addBitmap takes a whole file of ids; a table cannot.
	addBitmap(*bitmap.Bitmap) error
}

// sink takes the rows of one worker.
type sink interface {
	// add takes rows; codes is as long as ids for tables, else empty.
	add(ids []uint32, codes []uint16)
	flush()
}

// oneSet is the destination of the inputs of one segment.
type oneSet struct{ set *bitmap.Set }

func (o *oneSet) isTable() bool { return false }

func (o *oneSet) newSink() (sink, format.Names) { return &setSink{writer: o.set.NewWriter()}, nil }

func (o *oneSet) addBitmap(b *bitmap.Bitmap) error {
	o.set.AddBitmap(b)
	return nil
}

type setSink struct{ writer *bitmap.Writer }

func (s *setSink) add(ids []uint32, _ []uint16) { s.writer.Add(ids) }
func (s *setSink) flush()                       { s.writer.Flush() }
