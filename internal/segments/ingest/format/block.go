package format

import "bytes"

// Names gives a table's segments their codes.
type Names interface {
	// Code is a small number for the segment of this name; an error is the reason
	// why the row is bad. The name is not kept.
	Code(name []byte) (uint16, error)
}

// Block is what a parser found in one piece of a file. It is used again from
// block to block: Reset empties it. Not safe for concurrent use.
type Block struct {
	IDs   []uint32
	Codes []uint16 // of the rows' segments: as many as IDs in a table, else none
	Bad   []Bad    // the first bad rows
	// BadLines counts all bad rows, each by its lines: what a stray quote encloses are rows too.
	BadLines int64
	// Lines of the row that is looked at: 1 unless a parser sets it, for as long as it looks at that row.
	Lines     int64
	Multiline Multiline // the rows that span several lines

	names Names
	keep  int
}

// NewBlock returns an empty block that keeps so many bad rows; names is nil unless
// the rows are a table's.
func NewBlock(names Names, keep int) *Block { return &Block{Lines: 1, names: names, keep: keep} }

// Reset empties the block, but for what it may use again. The bad rows are the caller's.
func (b *Block) Reset() {
	b.IDs, b.Codes, b.Bad, b.BadLines = b.IDs[:0], b.Codes[:0], nil, 0
	b.Lines, b.Multiline = 1, Multiline{}
}

// Code is the code of a segment's name, of a table only.
func (b *Block) Code(name []byte) (uint16, error) { return b.names.Code(name) }

// Add takes a row's fields, which are not kept. segment counts in a table only.
func (b *Block) Add(row int64, id, segment []byte) {
	v, ok := parseID(id)
	if !ok {
		b.Reject(row, id, whyNotID(id))
		return
	}
	if b.names != nil {
		if n := len(segment); n > 0 && (segment[0] <= ' ' || segment[n-1] <= ' ') {
			segment = bytes.TrimSpace(segment)
		}
		code, err := b.names.Code(segment)
		if err != nil {
			b.Reject(row, segment, err.Error())
			return
		}
		b.Codes = append(b.Codes, code)
	}
	b.IDs = append(b.IDs, v)
}

// Reject counts a bad row.
func (b *Block) Reject(row int64, value []byte, reason string) {
	b.BadLines += b.Lines
	if len(b.Bad) >= b.keep {
		return
	}
	bad := Bad{Row: row, Value: clip(value, maxValue), Reason: reason}
	if b.Lines > 1 {
		bad.Lines = b.Lines
	}
	b.Bad = append(b.Bad, bad)
}
