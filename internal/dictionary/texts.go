package dictionary

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A separate file converts numbers to ids; a generation may lack it.
//
// Rests: 8 bytes "caprest1", 4 bytes n, 4 bytes 0, then the rest of each number's id, 8 bytes little-endian.
//
// Texts: 8 bytes "captext1", 4 bytes n, 4 bytes 0; for each number one byte with the length of the text less 1, and the
// text; then for every 16th number the offset of its length in the file, 8 bytes little-endian.
const (
	restMagic  = "caprest1"
	textMagic  = "captext1"
	textStride = 16
	// MaxText is the largest length of a text in bytes.
	MaxText = 256
)

func header(magic string, n uint32) []byte {
	raw := append(make([]byte, 0, headerBytes), magic...)
	return append(binary.LittleEndian.AppendUint32(raw, n), 0, 0, 0, 0)
}

// checkHeader returns the number of entries in a file.
func checkHeader(raw []byte, magic string) (n uint32, err error) {
	if len(raw) < headerBytes || string(raw[:8]) != magic {
		return 0, errors.New("the file does not start with " + magic)
	}
	if binary.LittleEndian.Uint32(raw[12:]) != 0 {
		return 0, errors.New("the bytes 12 to 15 of the file must be 0")
	}
	return binary.LittleEndian.Uint32(raw[8:]), nil
}

// Rests leads from numbers to the rests of ids, which together with the images are the ids (see ids.Scheme.Back). It
// is immutable, shares the bytes from which it was opened, and is safe for concurrent use.
type Rests struct{ raw []byte }

// RestWriter writes a file of rests.
type RestWriter struct {
	to      io.Writer
	n, want uint32
	buffer  []byte
}

// NewRestWriter returns a writer of n rests to a file.
func NewRestWriter(to io.Writer, n uint32) (*RestWriter, error) {
	_, err := to.Write(header(restMagic, n))
	return &RestWriter{to: to, want: n}, err
}

// Add writes the rest of the next number.
func (w *RestWriter) Add(rest uint64) error {
	if w.n == w.want {
		return fmt.Errorf("rests of ids: more rests than the announced number %d", w.want)
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

// Close writes what is left. It does not close the writer below.
func (w *RestWriter) Close() error {
	if w.n != w.want {
		return fmt.Errorf("rests of ids: %d rests instead of the announced %d", w.n, w.want)
	}
	return w.flush()
}

// RestsSize returns the length of a file of n rests.
func RestsSize(n uint32) int64 { return headerBytes + 8*int64(n) }

// OpenRests checks a file of rests. Every rest is valid, so the caller compares the SHA-256 of the file.
func OpenRests(raw []byte) (*Rests, error) {
	n, err := checkHeader(raw, restMagic)
	if err != nil {
		return nil, fmt.Errorf("rests: %w", err)
	}
	if size := headerBytes + 8*int64(n); size != int64(len(raw)) {
		return nil, fmt.Errorf("rests of ids: the file has %d bytes, but %d rests need %d", len(raw), n, size)
	}
	return &Rests{raw[headerBytes:]}, nil
}

// Len returns the number of rests.
func (r *Rests) Len() uint32 { return uint32(len(r.raw) / 8) }

// Rest returns the rest of the number, which must be below Len.
func (r *Rests) Rest(number uint32) uint64 { return binary.LittleEndian.Uint64(r.raw[8*int(number):]) }

// TextWriter writes a file of texts. It keeps the index in memory, half a byte a text.
type TextWriter struct {
	to      io.Writer
	n, want uint32
	at      uint64
	index   []byte
	buffer  []byte
}

// NewTextWriter returns a writer of n texts to a file.
func NewTextWriter(to io.Writer, n uint32) (*TextWriter, error) {
	w := &TextWriter{to: to, want: n, at: headerBytes}
	_, err := to.Write(header(textMagic, n))
	return w, err
}

// Add writes the text of the next number.
func (w *TextWriter) Add(text []byte) error {
	switch {
	case len(text) == 0 || len(text) > MaxText:
		return fmt.Errorf("texts: a text must have 1 to %d bytes, got %d", MaxText, len(text))
	case w.n == w.want:
		return fmt.Errorf("texts: more texts than the announced number %d", w.want)
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

// Close writes the index. It does not close the writer below.
func (w *TextWriter) Close() error {
	if w.n != w.want {
		return fmt.Errorf("texts: %d texts instead of the announced %d", w.n, w.want)
	}
	if err := w.flush(); err != nil {
		return err
	}
	_, err := w.to.Write(w.index)
	return err
}

// Texts leads from numbers to texts. It is immutable, shares the bytes from which it was opened, and is safe for
// concurrent use.
type Texts struct {
	raw, index []byte
	count      uint32
}

// TextsSize returns the size of the file of n texts with this number of bytes together.
func TextsSize(n uint32, bytes int64) int64 {
	return headerBytes + int64(n) + bytes + 8*((int64(n)+textStride-1)/textStride)
}

// OpenTexts checks a file of texts. A flip within a text leaves a valid file, so the caller compares its SHA-256.
func OpenTexts(raw []byte) (*Texts, error) {
	n, err := checkHeader(raw, textMagic)
	if err != nil {
		return nil, fmt.Errorf("texts: %w", err)
	}
	end := int64(len(raw)) - TextsSize(n, 0) + headerBytes + int64(n)
	if end < headerBytes+2*int64(n) {
		return nil, fmt.Errorf("texts: the file has %d bytes, too few for %d texts", len(raw), n)
	}
	t := &Texts{raw: raw[:end], index: raw[end:], count: n}
	at := int64(headerBytes)
	for number := range n {
		if number%textStride == 0 && t.offset(number/textStride) != uint64(at) {
			return nil, fmt.Errorf("texts: the index has a wrong position for text %d", number)
		}
		if at < end {
			at += 2 + int64(raw[at])
		}
		if at > end || at == end && number < n-1 {
			return nil, fmt.Errorf("texts: text %d ends after the last byte of the texts", number)
		}
	}
	if at != end {
		return nil, fmt.Errorf("texts: %d bytes follow the last text", end-at)
	}
	return t, nil
}

func (t *Texts) offset(i uint32) uint64 { return binary.LittleEndian.Uint64(t.index[8*int(i):]) }

// Len returns the number of texts.
func (t *Texts) Len() uint32 { return t.count }

// Text returns the text of the number, which must be below Len. The result shares the file's bytes.
func (t *Texts) Text(number uint32) []byte {
	r := t.Reader()
	return r.Text(number)
}

// TextReader reads many texts. It begins at the last text, so that ascending numbers cost the least. A TextReader
// belongs to one goroutine.
type TextReader struct {
	of   *Texts
	next uint32 // the number of the text at this offset
	at   uint64
}

// Reader returns a reader of the texts.
func (t *Texts) Reader() TextReader { return TextReader{of: t, next: t.count} }

// Text is Texts.Text.
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
