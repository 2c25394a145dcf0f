package ingest

import (
	"capper/internal/bitmap"
	"capper/internal/segments/ingest/format"
)

// destination receives the rows of inputs: into one set, or into one set for each name in a table.
type destination interface {
	isTable() bool
	// newSink returns a sink for one worker. The names are nil unless the destination is a table.
	newSink() (sink, format.Names)
	// addBitmap adds a whole bitmap file; a table rejects it.
	addBitmap(*bitmap.Bitmap) error
}

// sink receives the rows that one worker has parsed.
type sink interface {
	// add adds the rows of a block.
	add(*format.Block)
	flush()
}

// oneSet is the destination for the inputs of one segment or set.
type oneSet struct{ set *bitmap.Set }

func (o *oneSet) isTable() bool { return false }

func (o *oneSet) newSink() (sink, format.Names) { return &setSink{writer: o.set.NewWriter()}, nil }

func (o *oneSet) addBitmap(b *bitmap.Bitmap) error {
	o.set.AddBitmap(b)
	return nil
}

type setSink struct{ writer *bitmap.Writer }

func (s *setSink) add(b *format.Block) { s.writer.Add(b.IDs) }
func (s *setSink) flush()              { s.writer.Flush() }
