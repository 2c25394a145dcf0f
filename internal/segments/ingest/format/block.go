package format

import (
	"bytes"

	"capper/internal/ids"
)

// Names assigns a numeric code to each name of a segment or set that occurs in the rows of an input file.
type Names interface {
	// Code returns the code of the segment or set with this name. If Code returns an error, the row is bad, and the
	// error is the reason. Code does not keep the slice after it returns.
	Code(name []byte) (uint16, error)
}

// A Block contains the rows that a parser found in one piece of an input file. The method Reset empties a Block for
// reuse. A Block is not safe for concurrent use.
type Block struct {
	IDs    []uint32 // dense ids (32-bit integers)
	Images []uint64 // images of other ids (64-bit numbers that stand for the ids)
	// If ReadAs was called with names and the ids are UUIDs, Rests contains the 64 bits of each UUID that the image
	// lacks. If the ids are texts, Texts contains the text ids.
	Rests []uint64
	Texts Texts
	Codes []uint16 // in a table: for each row, the code of the name
	Bad   []Bad    // the first bad rows
	// BadLines is the total number of lines of all bad rows. A stray quote may enclose several rows in one bad row with
	// several lines.
	BadLines int64
	// Lines is the number of lines of the current row. Unless a parser sets another value for the row, Lines is 1.
	Lines     int64
	Multiline Multiline // rows that span several lines

	names  Names
	keep   int
	parser *ids.Parser // nil: ids are dense
	kind   ids.Kind
	rests  bool // keep Rests
	texts  bool // keep Texts
}

// NewBlock returns an empty Block. The argument "keep" of NewBlock is the maximum number of bad rows that the Block
// stores. If the rows also name a segment or set, the argument "names" assigns codes to these names, and otherwise must
// be nil.
func NewBlock(names Names, keep int) *Block { return &Block{Lines: 1, names: names, keep: keep} }

// ReadAs sets the scheme (kind and hash key) of the block's ids; without ReadAs, the ids are dense (32-bit integers).
// If the argument "names" is true, the block also keeps data for converting images (64-bit numbers that stand for ids)
// back to ids.
func (b *Block) ReadAs(s *ids.Scheme, names bool) {
	b.parser, b.kind = s.NewParser(), s.Kind()
	b.rests, b.texts = names && b.kind == ids.UUID, b.kind == ids.Text
}

// Texts stores a list of texts in one byte slice. The zero Texts is an empty list.
type Texts struct {
	bytes []byte
	ends  []int
}

// Append adds a copy of a text.
func (t *Texts) Append(text []byte) {
	t.bytes = append(t.bytes, text...)
	t.ends = append(t.ends, len(t.bytes))
}

// The method At returns the text with the index i. The returned slice shares the memory of t.
func (t *Texts) At(i int) []byte {
	start := 0
	if i > 0 {
		start = t.ends[i-1]
	}
	return t.bytes[start:t.ends[i]]
}

func (t *Texts) reset() { t.bytes, t.ends = t.bytes[:0], t.ends[:0] }

// Rows returns the number of valid rows.
func (b *Block) Rows() int { return len(b.IDs) + len(b.Images) }

// Reset removes all rows from the block, but keeps the block's memory for reuse. The bad rows belong to the caller, and
// Reset does not overwrite them.
func (b *Block) Reset() {
	b.IDs, b.Images, b.Codes, b.Bad, b.BadLines = b.IDs[:0], b.Images[:0], b.Codes[:0], nil, 0
	b.Lines, b.Multiline, b.Rests = 1, Multiline{}, b.Rests[:0]
	b.Texts.reset()
}

// Add parses the fields of one row and adds the result to the block. The block does not refer to the fields afterwards.
// If the rows of the file name no segment or set, Add ignores the argument "segment".
func (b *Block) Add(row int64, id, segment []byte) {
	if b.parser != nil {
		b.addImage(row, id, segment)
		return
	}
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

// Reject counts a bad row. If the block stores fewer bad rows than the maximum, Reject also adds the row and the reason
// to the block.
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
