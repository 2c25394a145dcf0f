package cli

import (
	"bytes"
	"fmt"
	"io"
)

// maxLength is the maximum number of bytes in a line, including the line break.
const maxLength = 1 << 20

// The type reader reads whole lines. Each read returns the available lines of the input, and waits only if no line is
// available.
type reader struct {
	from io.Reader
	read int64  // number of lines returned so far
	rest []byte // beginning of an incomplete line
	err  error  // error that ended the input
}

// A block is a sequence of input lines with their line breaks. The last line of the input may have no line break.
type block struct {
	text  []byte
	start int   // beginning of the first line
	ends  []int // end of each line
}

// The constants below are the size of the reader's buffer, and the free space below which the reader allocates a new
// buffer.
const (
	bufferSize = 64 << 10
	smallRead  = 4 << 10
)

// The method "next" reads and returns at least one more line of the input. At the end of the input, the method "next"
// returns io.EOF.
func (r *reader) next() (block, error) {
	for r.err == nil {
		if cap(r.rest)-len(r.rest) < smallRead { // allocate a new buffer, because callers still use the old one
			r.rest = append(make([]byte, 0, 2*len(r.rest)+bufferSize), r.rest...)
		}
		n, err := r.from.Read(r.rest[len(r.rest):cap(r.rest)])
		buffer := r.rest[:len(r.rest)+n]
		r.err = err
		if err == io.EOF {
			r.rest = nil
			return r.cut(buffer)
		}
		whole := bytes.LastIndexByte(buffer, '\n') + 1
		if r.rest = buffer[whole:]; whole > 0 {
			return r.cut(buffer[:whole])
		}
		if len(r.rest) > maxLength {
			return r.cut(r.rest)
		}
	}
	return block{}, r.err
}

// The method "cut" splits a text into lines, and stops at a line with more than maxLength bytes.
func (r *reader) cut(text []byte) (block, error) {
	b := block{text: text}
	for start := 0; start < len(text); {
		length := bytes.IndexByte(text[start:], '\n') + 1
		if length == 0 {
			length = len(text) - start
		}
		if length > maxLength {
			r.err = fmt.Errorf("line %d must be at most %d bytes long", r.read+1, maxLength)
			break
		}
		start += length
		r.read++
		b.ends = append(b.ends, start)
	}
	if len(b.ends) == 0 {
		return b, r.err
	}
	return b, nil
}

// The method "drop" removes the first n lines from the block of input lines.
func (b *block) drop(n int) {
	if n > 0 {
		b.start, b.ends = b.ends[n-1], b.ends[n:]
	}
}

// The method "skip" reads and drops n lines of the input. The method "skip" returns the lines that it has already read
// after the dropped lines.
func (r *reader) skip(n int64) (b block, err error) {
	for n > 0 && err == nil {
		b, err = r.next()
		if err == io.EOF {
			return b, &shortError{Skip: r.read + n, Lines: r.read}
		}
		k := min(n, int64(len(b.ends)))
		b.drop(int(k))
		n -= k
	}
	return b, err
}

// shortError reports that the input has fewer lines than the command should skip.
type shortError struct{ Skip, Lines int64 }

func (e *shortError) Error() string {
	return fmt.Sprintf("--skip: %d lines, but the input has only %d", e.Skip, e.Lines)
}

// The function "count" returns the number of lines in a text, including a last line without a line break.
func count(from io.Reader) (n int64, err error) {
	buffer, last := make([]byte, 1<<18), byte('\n')
	for {
		k, err := from.Read(buffer)
		if n += int64(bytes.Count(buffer[:k], []byte{'\n'})); k > 0 {
			last = buffer[k-1]
		}
		switch {
		case err == io.EOF && last != '\n':
			return n + 1, nil
		case err == io.EOF:
			return n, nil
		case err != nil:
			return n, err
		}
	}
}
