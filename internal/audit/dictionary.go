package audit

import "fmt"

// The bounds of a dictionary: what writer and reader of a file keep in memory for it.
const (
	maxWords     = 1 << 16
	maxWordBytes = 4 << 20
	maxWord      = 4 << 10 // a longer text is not kept
)

// References to texts in frames. Others are the number of a kept one, plus refFirst.
const (
	refKept    = 0 // the text follows, and is kept
	refLiteral = 1 // the text follows
	refFirst   = 2
)

// dictionary is the texts of one file that stand in it once, in the order of their
// first frames. When it is full, later texts stand in each of their frames.
type dictionary struct {
	words []string // of a reader
	known map[string]uint64
	bytes int
}

// room reports whether the text is to be kept. Writer and reader must agree.
func (d *dictionary) room(size, words int) bool {
	return size <= maxWord && words < maxWords && d.bytes+size <= maxWordBytes
}

// append appends the reference of the text, and the text where it must follow.
func (d *dictionary) append(dst []byte, text string) []byte {
	if n, ok := d.known[text]; ok {
		return appendUvarint(dst, refFirst+n)
	}
	ref := uint64(refLiteral)
	if d.room(len(text), len(d.known)) {
		ref = refKept
		if d.known == nil {
			d.known = map[string]uint64{}
		}
		d.known[text] = uint64(len(d.known))
		d.bytes += len(text)
	}
	dst = appendUvarint(dst, ref)
	dst = appendUvarint(dst, uint64(len(text)))
	return append(dst, text...)
}

// read is the text of the reference that the cursor stands at.
func (d *dictionary) read(c *cursor) string {
	ref := c.uvarint()
	if ref >= refFirst {
		if ref-refFirst >= uint64(len(d.words)) {
			c.fail(fmt.Errorf("text number %d does not exist: the dictionary has %d texts",
				ref-refFirst, len(d.words)))
			return ""
		}
		return d.words[ref-refFirst]
	}
	text := c.text()
	if ref == refKept && c.err == nil {
		if !d.room(len(text), len(d.words)) {
			c.fail(fmt.Errorf("text number %d exceeds the size of the dictionary", len(d.words)))
			return ""
		}
		d.words = append(d.words, text)
		d.bytes += len(text)
	}
	return text
}
