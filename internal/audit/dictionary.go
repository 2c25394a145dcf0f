package audit

import "fmt"

// maxWords, maxWordBytes and maxWord limit the dictionary of texts in an audit file, because its writer and its readers
// keep the dictionary in memory.
const (
	maxWords     = 1 << 16
	maxWordBytes = 4 << 20
	maxWord      = 4 << 10 // longest text, in bytes, that the dictionary keeps
)

// A stored record contains a number for each text. For a text in the dictionary of the file, the record contains
// refFirst plus the number of the text in the dictionary. For every other text, the record contains refKept or
// refLiteral.
const (
	refKept    = 0 // the text follows and enters the dictionary
	refLiteral = 1 // the text follows and does not enter the dictionary
	refFirst   = 2
)

// A dictionary holds the texts that an audit file stores once, in the order of their first occurrence. If the
// dictionary is full, every record with a new text contains the whole text.
type dictionary struct {
	words []string // the texts, for a reader
	known map[string]uint64
	bytes int
}

// The method room reports whether the dictionary of texts in an audit file has space for another text. The writer and
// the reader of an audit file must get equal results from room(), so that they give each text the same number.
func (d *dictionary) room(size, words int) bool {
	return size <= maxWord && words < maxWords && d.bytes+size <= maxWordBytes
}

// The method append appends a text to a stored record. For a text in the dictionary, the record contains only a number.
// For every other text, the record contains the number refKept or refLiteral, and then the text.
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

// The method read reads and returns a text that the method append has stored.
func (d *dictionary) read(c *cursor) string {
	ref := c.uvarint()
	if ref >= refFirst {
		if ref-refFirst >= uint64(len(d.words)) {
			c.fail(fmt.Errorf("audit record refers to text %d, but the dictionary of the audit file has only %d texts",
				ref-refFirst, len(d.words)))
			return ""
		}
		return d.words[ref-refFirst]
	}
	text := c.text()
	if ref == refKept && c.err == nil {
		if !d.room(len(text), len(d.words)) {
			c.fail(fmt.Errorf(
				"audit record adds text %d to the dictionary of the audit file, but the dictionary is full",
				len(d.words)))
			return ""
		}
		d.words = append(d.words, text)
		d.bytes += len(text)
	}
	return text
}
