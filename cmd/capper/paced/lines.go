package paced

import (
	"bytes"
	"fmt"
	"io"
)

// MaxLine is the longest line, its break included.
const MaxLine = 1 << 20

// lines reads whole lines, as many at a time as are there.
type lines struct {
	from io.Reader
	read int64  // lines that were handed out
	rest []byte // of a line that has not been read whole
	err  error  // why there are no more
}

// block is lines as they were read, with their breaks; the last of a text may have
// none.
type block struct {
	text  []byte
	start int   // of the first line
	ends  []int // of each line
}

// next is the lines that come next, at least one. The error at the end is io.EOF.
func (l *lines) next() (block, error) {
	for l.err == nil {
		buffer := append(make([]byte, 0, len(l.rest)+1<<16), l.rest...)
		n, err := l.from.Read(buffer[len(buffer):cap(buffer)])
		buffer, l.err = buffer[:len(buffer)+n], err
		if err == io.EOF {
			l.rest = nil
			return l.cut(buffer)
		}
		whole := bytes.LastIndexByte(buffer, '\n') + 1
		if l.rest = buffer[whole:]; whole > 0 {
			return l.cut(buffer[:whole])
		}
		if len(l.rest) > MaxLine {
			return l.cut(l.rest)
		}
	}
	return block{}, l.err
}

// cut tells the lines of a text apart, up to one that is too long.
func (l *lines) cut(text []byte) (block, error) {
	b := block{text: text}
	for start := 0; start < len(text); {
		length := bytes.IndexByte(text[start:], '\n') + 1
		if length == 0 {
			length = len(text) - start
		}
		if length > MaxLine {
			l.err = fmt.Errorf("line %d: must be at most %d bytes long", l.read+1, MaxLine)
			break
		}
		start += length
		l.read++
		b.ends = append(b.ends, start)
	}
	if len(b.ends) == 0 {
		return b, l.err
	}
	return b, nil
}

// drop takes the first n lines away.
func (b *block) drop(n int) {
	if n > 0 {
		b.start, b.ends = b.ends[n-1], b.ends[n:]
	}
}

// skip reads the first n lines, and hands out what was read with the last of them.
func (l *lines) skip(n int64) (b block, err error) {
	for n > 0 && err == nil {
		b, err = l.next()
		if err == io.EOF {
			return b, fmt.Errorf("%d lines to be skipped: there are %d", l.read+n, l.read)
		}
		k := min(n, int64(len(b.ends)))
		b.drop(int(k))
		n -= k
	}
	return b, err
}

// Count is how many lines a text has, the last with a break or without.
func Count(from io.Reader) (n int64, err error) {
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
