package audit

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// A cursor reads the payload of a frame (entry of an audit file). After the first fault in the payload, every read of
// the cursor returns zero.
type cursor struct {
	rest []byte
	err  error
}

func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err, c.rest = err, nil
	}
}

func (c *cursor) byte() byte {
	if len(c.rest) == 0 {
		c.fail(errTruncated)
		return 0
	}
	b := c.rest[0]
	c.rest = c.rest[1:]
	return b
}

// uvarint reads a number in varint encoding. The method uvarint accepts only the shortest encoding of a number, because
// the writer uses the shortest encoding.
func (c *cursor) uvarint() uint64 {
	n, size := binary.Uvarint(c.rest)
	switch {
	case size == 0:
		c.fail(errTruncated)
		return 0
	case size < 0 || size > 1 && c.rest[size-1] == 0:
		c.fail(fmt.Errorf("decode an audit file: a number must be encoded in as few bytes as possible"))
		return 0
	}
	c.rest = c.rest[size:]
	return n
}

func (c *cursor) varint() int64 {
	n := c.uvarint()
	return int64(n>>1) ^ -int64(n&1)
}

// The method count reads a number of users, or any other number that fits a Go int.
func (c *cursor) count() int { return int(c.below(1 << 40)) }

// The method "below" reads a number, and rejects a number above the argument "most".
func (c *cursor) below(most uint64) uint64 {
	n := c.uvarint()
	if n > most {
		c.fail(fmt.Errorf("decode an audit file: a number must be at most %d, got %d", most, n))
		return 0
	}
	return n
}

// The method "elements" reads the number of elements of a list. Each element of the list takes at least one byte.
func (c *cursor) elements() int { return int(c.below(uint64(len(c.rest)))) }

func (c *cursor) bytes(n uint64) []byte {
	if n > uint64(len(c.rest)) {
		c.fail(errTruncated)
		return nil
	}
	b := c.rest[:n:n]
	c.rest = c.rest[n:]
	return b
}

func (c *cursor) text() string {
	b := c.bytes(c.below(MaxText))
	if !utf8.Valid(b) {
		c.fail(fmt.Errorf("text in an audit file is not valid UTF-8"))
		return ""
	}
	return string(b)
}

// The method end returns the first fault that the cursor has found in the payload. Unread bytes at the end of the
// payload are also a fault.
func (c *cursor) end() error {
	if c.err == nil && len(c.rest) > 0 {
		c.fail(fmt.Errorf("%d extra bytes follow the end of the audit record", len(c.rest)))
	}
	return c.err
}

func appendUvarint(dst []byte, n uint64) []byte { return binary.AppendUvarint(dst, n) }

func appendVarint(dst []byte, n int64) []byte {
	return binary.AppendUvarint(dst, uint64(n)<<1^uint64(n>>63))
}

func appendText(dst []byte, text string) []byte {
	return append(appendUvarint(dst, uint64(len(text))), text...)
}
