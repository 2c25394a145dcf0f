package ingest

import (
	"capper/internal/bitmap"
	"capper/internal/segments/ingest/format"
)

// A destination receives the rows that workers parse. A destination adds the users in the parsed rows to one set or,
// for a table, to one set for each name.
type destination interface {
	isTable() bool
	// newSink returns a sink (receiver of parsed rows) for one worker. If the destination is not a table, the argument
	// "names" is nil.
	newSink() (sink, format.Names)
	// addBitmap adds the users of a whole bitmap file. A table rejects bitmap files.
	addBitmap(*bitmap.Bitmap) error
}

// A sink receives the rows that one worker has parsed, on behalf of a destination (receiver of the rows of all
// workers).
type sink interface {
	// The method "add" adds the rows of a block.
	add(*format.Block)
	flush()
}

// oneSet is the destination for inputs whose rows all belong to one segment or set.
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
