package format

import (
	"bytes"
	"fmt"
	"io"
)

// A Syntax has the functions that cut the text of an input file into blocks of complete rows, and parse the blocks.
type Syntax struct {
	// The function Whole returns the length of the complete rows at the start of a text, in bytes. If no row is
	// complete, Whole returns 0.
	Whole func(text []byte) int
	// The function Parse parses a text of complete rows into a block. The argument "line" is the number of the first
	// line. Several goroutines call Parse, each with its own block.
	Parse func(into *Block, text []byte, line int64)
	// If Nulls is true, blank lines at the end of the text are rows. Many programs end a file with a meaningless blank
	// line, but in a file with one column, a blank line is a null.
	Nulls bool
	// The function Escaped reports whether an escape character at the end of a text would escape a following line
	// break. If Escaped is nil, no line break is escaped.
	Escaped func(text []byte) bool
	// The function Complete reports whether a last line without a line break is complete. If Complete is nil, a last
	// line without a line break may be truncated.
	Complete func(line []byte) bool
}

// Ready returns the length of the text that a caller can parse before it reads more, in bytes. Ready excludes blank
// lines at the end, because the following text decides whether these lines are at the end of the file.
func (s *Syntax) Ready(text []byte) int {
	end := s.Whole(text)
	if s.Nulls {
		return end
	}
	trimmed := bytes.TrimRight(text[:end], "\r\n")
	if len(trimmed) == 0 || s.Escaped != nil && s.Escaped(trimmed) {
		return end
	}
	return len(trimmed) + bytes.IndexByte(text[len(trimmed):], '\n') + 1
}

// Rest returns the last block of a text without blank lines at its end, unless blank lines are rows.
func (s *Syntax) Rest(text []byte) []byte {
	if s.Nulls {
		return text
	}
	return bytes.TrimRight(text, "\r\n")
}

// shortText is the length in bytes of a text file that may end without a line break, because many hand-written files
// have no final line break. Text files with more than shortText bytes are exports of programs.
const shortText = 16 << 10

// MayBeTruncated reports whether a text file may have lost its end. The argument "size" of MayBeTruncated is the length
// of the whole text in bytes, and the argument "end" is the last block of the text. If a long text has no final line
// break, it may be truncated, unless the function Complete accepts the last line. A truncated id could be the id of
// another user.
func (s *Syntax) MayBeTruncated(end []byte, size int) bool {
	if LineIsClosed(end) || size <= shortText {
		return false
	}
	return s.Complete == nil || !s.Complete(end[wholeLines(end):])
}

// LineIsClosed reports whether a text is empty or ends in a line break.
func LineIsClosed(text []byte) bool { return wholeLines(text) == len(text) }

// Blocks reads a text file and cuts it into blocks of complete rows. A row of the text file must have at most HeadBytes
// bytes.
type Blocks struct {
	from   io.Reader
	syntax Syntax
	line   int64  // number of the first line of the next block
	rest   []byte // the beginning of the next block
	size   int
}

// NewBlocks returns a Blocks for the text that the reader returns. The argument "line" of NewBlocks is the number of
// the first line.
func NewBlocks(from io.Reader, line int64, s Syntax) *Blocks {
	return &Blocks{from: from, line: line, syntax: s}
}

// Size returns the number of bytes of the text that the Blocks has read so far.
func (b *Blocks) Size() int { return b.size }

// The method Next reads the next block of rows into buffer, which may grow. The method Next returns the block and the
// number of the block's first line. The result "last" of Next is true for the last block, which may be empty. After a
// read error, the result "line" of Next is the number of the line with the failed read.
func (b *Blocks) Next(buffer []byte) (block []byte, line int64, last bool, err error) {
	block, last, err = fill(b.from, append(buffer[:0], b.rest...))
	if err != nil {
		return nil, b.line + int64(bytes.Count(block, []byte{'\n'})), false, err
	}
	b.size += len(block) - len(b.rest)
	b.rest = b.rest[:0]
	if !last {
		end := b.syntax.Ready(block)
		if end == 0 {
			return nil, b.line, false, longRow(b.line)
		}
		b.rest = append(b.rest, block[end:]...)
		block = block[:end]
	}
	line = b.line
	b.line += int64(bytes.Count(block, []byte{'\n'}))
	return block, line, last, nil
}

// longRow is the error for a row with more than HeadBytes bytes. The value of a longRow is the number of the row's
// first line.
type longRow int64

// Error returns a text with the number of the row's first line and the limit.
func (l longRow) Error() string {
	return fmt.Sprintf("line %d: a row has more than %d bytes, or a quote is never closed", int64(l), HeadBytes)
}

// The function "fill" reads from a reader until the argument "block" has HeadBytes bytes. The result "last" of the
// function "fill" is true if the reader returned io.EOF; after any other error, the block is incomplete.
func fill(from io.Reader, block []byte) (filled []byte, last bool, err error) {
	for len(block) < HeadBytes {
		if len(block) == cap(block) {
			block = append(block, 0)[:len(block)]
		}
		n, err := from.Read(block[len(block):min(cap(block), HeadBytes)])
		block = block[:len(block)+n]
		if err == io.EOF {
			return block, true, nil
		}
		if err != nil {
			return block, false, err
		}
	}
	return block, false, nil
}

// wholeLines returns the length of the complete lines at the start of a text, in bytes.
func wholeLines(text []byte) int { return bytes.LastIndexByte(text, '\n') + 1 }
