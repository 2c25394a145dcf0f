package dictionary

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A generation of segments may have a separate file that converts numbers in bitmaps to user ids.
//
// A file of rests (64 bits of each UUID that the image lacks) begins with the 8 bytes "caprest1", the number n of ids
// in 4 bytes, and 4 zero bytes. After this header, the file contains the rests in the order of the user numbers, 8
// bytes little-endian each.
//
// A file of text ids begins with the 8 bytes "captext1", the number n of ids in 4 bytes, and 4 zero bytes. After this
// header, the file contains the text ids in the order of the user numbers. Each text id consists of one byte with the
// length of the text minus 1, and the text. A file of text ids ends with an index: the offset of the length byte of
// every 16th text, as 8 bytes little-endian.
const (
	restMagic  = "caprest1"
	textMagic  = "captext1"
	textStride = 16
	// MaxText is the maximum length of a text id in bytes.
	MaxText = 256
)

func header(magic string, n uint32) []byte {
	raw := append(make([]byte, 0, headerBytes), magic...)
	return append(binary.LittleEndian.AppendUint32(raw, n), 0, 0, 0, 0)
}

// checkHeader checks the header of a Rests or Texts file and returns the number of entries in the file.
func checkHeader(raw []byte, magic string) (n uint32, err error) {
	if len(raw) < headerBytes || string(raw[:8]) != magic {
		return 0, fmt.Errorf("the dictionary file must begin with the bytes %q", magic)
	}
	if binary.LittleEndian.Uint32(raw[12:]) != 0 {
		return 0, errors.New("the bytes 12 to 15 in the header of the dictionary file must be 0")
	}
	return binary.LittleEndian.Uint32(raw[8:]), nil
}

// Rests maps user numbers to the rests of ids. The rest of an id is the 64 bits of a UUID that the image (64-bit number
// that stands for the id) lacks. The rest and the image of an id together determine the id (see ids.Scheme.Back). A
// value of the type Rests is immutable and safe for concurrent use. A Rests shares the memory of the bytes that the
// caller passed to OpenRests.
type Rests struct{ raw []byte }

// RestWriter writes a file with the rests of ids (the 64 bits of a UUID that the image lacks).
type RestWriter struct {
	to      io.Writer
	n, want uint32
	buffer  []byte
}

// NewRestWriter returns a RestWriter for a file with the rests (64 bits each that the image lacks) of exactly n ids.
func NewRestWriter(to io.Writer, n uint32) (*RestWriter, error) {
	_, err := to.Write(header(restMagic, n))
	return &RestWriter{to: to, want: n}, err
}

// Add writes the rest (64 bits that the image lacks) of the id with the next number.
func (w *RestWriter) Add(rest uint64) error {
	if w.n == w.want {
		return fmt.Errorf(
			"write rests of UUIDs (64 bits that the hash of a UUID lacks): "+
				"the caller announced %d rests, but added more",
			w.want)
	}
	w.n++
	w.buffer = binary.LittleEndian.AppendUint64(w.buffer, rest)
	if len(w.buffer) < 1<<16 {
		return nil
	}
	return w.flush()
}

func (w *RestWriter) flush() error {
	_, err := w.to.Write(w.buffer)
	w.buffer = w.buffer[:0]
	return err
}

// Close writes the rests that are still in the buffer. Close does not close the underlying io.Writer. Close returns an
// error if the caller added fewer rests than NewRestWriter was told to expect.
func (w *RestWriter) Close() error {
	if w.n != w.want {
		return fmt.Errorf(
			"write rests of UUIDs (64 bits that the hash of a UUID lacks): the caller added %d rests, but announced %d",
			w.n, w.want)
	}
	return w.flush()
}

// RestsSize returns the length of a file with the rests of n ids, in bytes.
func RestsSize(n uint32) int64 { return headerBytes + 8*int64(n) }

// OpenRests checks the header and the length of a Rests file. OpenRests cannot detect flipped bits in the rests,
// because every value of a rest is valid. The caller must therefore compare the SHA-256 of the file.
func OpenRests(raw []byte) (*Rests, error) {
	n, err := checkHeader(raw, restMagic)
	if err != nil {
		return nil, fmt.Errorf("rests: %w", err)
	}
	if size := headerBytes + 8*int64(n); size != int64(len(raw)) {
		return nil, fmt.Errorf(
			"read rests of UUIDs (64 bits that the hash of a UUID lacks): the file has %d bytes, "+
				"but %d rests need %d bytes",
			len(raw), n, size)
	}
	return &Rests{raw[headerBytes:]}, nil
}

// Len returns the number of rests in the file.
func (r *Rests) Len() uint32 { return uint32(len(r.raw) / 8) }

// The method Rest returns the 64 bits of an id that the image (64-bit number that stands for the id) lacks. The
// argument is the user number of the id, and must be below Len (the number of ids in the file).
func (r *Rests) Rest(number uint32) uint64 { return binary.LittleEndian.Uint64(r.raw[8*int(number):]) }

// TextWriter writes a file that maps user numbers to text ids. A TextWriter keeps the index of its file in memory until
// Close; the index takes half a byte per text.
type TextWriter struct {
	to      io.Writer
	n, want uint32
	at      uint64
	index   []byte
	buffer  []byte
}

// NewTextWriter returns a TextWriter for a file with exactly n text ids.
func NewTextWriter(to io.Writer, n uint32) (*TextWriter, error) {
	w := &TextWriter{to: to, want: n, at: headerBytes}
	_, err := to.Write(header(textMagic, n))
	return w, err
}

// Add writes the text id with the next number.
func (w *TextWriter) Add(text []byte) error {
	switch {
	case len(text) == 0 || len(text) > MaxText:
		return fmt.Errorf("write text ids: an id must have 1 to %d bytes, got %d", MaxText, len(text))
	case w.n == w.want:
		return fmt.Errorf("write text ids: the caller announced %d ids, but added more", w.want)
	}
	if w.n%textStride == 0 {
		w.index = binary.LittleEndian.AppendUint64(w.index, w.at)
	}
	w.n++
	w.at += 1 + uint64(len(text))
	w.buffer = append(append(w.buffer, byte(len(text)-1)), text...)
	if len(w.buffer) < 1<<16 {
		return nil
	}
	return w.flush()
}

func (w *TextWriter) flush() error {
	_, err := w.to.Write(w.buffer)
	w.buffer = w.buffer[:0]
	return err
}

// Close writes the index of the file. Close does not close the underlying io.Writer. Close returns an error if the
// caller added fewer texts than NewTextWriter was told to expect.
func (w *TextWriter) Close() error {
	if w.n != w.want {
		return fmt.Errorf("write text ids: the caller added %d ids, but announced %d", w.n, w.want)
	}
	if err := w.flush(); err != nil {
		return err
	}
	_, err := w.to.Write(w.index)
	return err
}

// Texts maps user numbers to text ids. A value of the type Texts is immutable and safe for concurrent use. A Texts
// shares the memory of the bytes that the caller passed to OpenTexts.
type Texts struct {
	raw, index []byte
	count      uint32
}

// TextsSize returns the length of a file with n text ids, in bytes. The argument "bytes" of TextsSize is the sum of the
// lengths of all n text ids.
func TextsSize(n uint32, bytes int64) int64 {
	return headerBytes + int64(n) + bytes + 8*((int64(n)+textStride-1)/textStride)
}

// OpenTexts checks the header, the lengths and the index of a file of text ids. OpenTexts cannot detect a flipped bit
// within a text, so the caller must compare the SHA-256 of the file.
func OpenTexts(raw []byte) (*Texts, error) {
	n, err := checkHeader(raw, textMagic)
	if err != nil {
		return nil, fmt.Errorf("texts: %w", err)
	}
	end := int64(len(raw)) - TextsSize(n, 0) + headerBytes + int64(n)
	if end < headerBytes+2*int64(n) {
		return nil, fmt.Errorf("read text ids: the file has %d bytes, too few for %d ids", len(raw), n)
	}
	t := &Texts{raw: raw[:end], index: raw[end:], count: n}
	at := int64(headerBytes)
	for number := range n {
		if number%textStride == 0 && t.offset(number/textStride) != uint64(at) {
			return nil, fmt.Errorf("read text ids: the index has a wrong position for id %d", number)
		}
		if at < end {
			at += 2 + int64(raw[at])
		}
		if at > end || at == end && number < n-1 {
			return nil, fmt.Errorf("read text ids: id %d ends after the last byte of the ids", number)
		}
	}
	if at != end {
		return nil, fmt.Errorf("read text ids: %d bytes follow the last id", end-at)
	}
	return t, nil
}

func (t *Texts) offset(i uint32) uint64 { return binary.LittleEndian.Uint64(t.index[8*int(i):]) }

// Len returns the number of texts in the file.
func (t *Texts) Len() uint32 { return t.count }

// Text returns the text id with the given number. The number must be below Len. The returned slice shares the bytes of
// the file.
func (t *Texts) Text(number uint32) []byte {
	r := t.Reader()
	return r.Text(number)
}

// TextReader reads many text ids by their numbers. If possible, a TextReader starts each search at the text that it
// read before, so reading in ascending order is fastest. A TextReader is for one goroutine.
type TextReader struct {
	of   *Texts
	next uint32 // number of the text at the offset at
	at   uint64
}

// Reader returns a TextReader for the text ids in the file.
func (t *Texts) Reader() TextReader { return TextReader{of: t, next: t.count} }

// Text returns the text id with the given number, like Texts.Text; the number must be below Len.
func (r *TextReader) Text(number uint32) []byte {
	if number < r.next || number/textStride != r.next/textStride {
		r.next, r.at = number/textStride*textStride, r.of.offset(number/textStride)
	}
	raw := r.of.raw
	for ; r.next < number; r.next++ {
		r.at += 2 + uint64(raw[r.at])
	}
	return raw[r.at+1 : r.at+2+uint64(raw[r.at])]
}
