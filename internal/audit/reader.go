package audit

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"capper/internal/capping"
)

// Reader reads an audit file from beginning to end. A Reader checks every checksum, number, text and bitmap in an audit
// file. If sequence numbers of records are missing, a Reader rejects the file, unless a Gap frame (entry about lost
// records) explains the missing numbers. A Reader keeps one record and the dictionaries of texts in memory. A Reader is
// not safe for concurrent use.
type Reader struct {
	in     *bufio.Reader
	offset int64 // end of the last whole frame, in bytes
	header Header
	at     capping.Instant
	next   uint64
	count  uint64 // number of records
	ended  bool
	failed error

	names    dictionary
	messages dictionary
}

// NewReader reads the header of an audit file. NewReader returns a *TornError if the file ends inside the header, a
// *DamageError if the header is invalid, or the error of the io.Reader.
func NewReader(in io.Reader) (*Reader, error) {
	r := &Reader{in: bufio.NewReaderSize(in, 4<<10)} // small: most files are already in memory
	begin := make([]byte, len(magic))
	if n, err := io.ReadFull(r.in, begin); err != nil {
		return nil, r.cut(err, begin[:n])
	}
	if string(begin) != magic {
		return nil, r.damaged(errors.New("not an audit file"))
	}
	r.offset = int64(len(magic))
	kind, payload, size, err := r.frame()
	if err != nil {
		return nil, err
	}
	if kind != frameHeader {
		return nil, r.damaged(fmt.Errorf("audit file begins with a frame of kind %d instead of a header", kind))
	}
	if err := r.readHeader(payload); err != nil {
		return nil, r.damaged(err)
	}
	r.offset += size
	return r, nil
}

// Header returns the header of the audit file.
func (r *Reader) Header() Header { return r.header }

// Offset returns the position in the audit file, in bytes, of the next frame (entry). All frames (entries) of the audit
// file before the position from Offset are intact.
func (r *Reader) Offset() int64 { return r.offset }

// The method Ended reports whether the Reader has read the end frame (last entry) of the audit file. An audit file with
// an end frame is closed, and readers expect no further entries.
func (r *Reader) Ended() bool { return r.ended }

// The method So returns the end frame (last entry) that would close the audit file at the current position of the
// Reader. If a writer died before it wrote an end frame, callers append the end frame that So returns to the audit
// file.
func (r *Reader) So() End { return End{Records: r.count, Last: r.next - 1} }

// The method Next returns the next frame of the audit file (a record, a gap or the end). If the audit file ends between
// two frames (entries), Next returns io.EOF. If the file ends inside a frame, Next returns a *TornError. For all other
// faults of the audit file, Next returns a *DamageError, or the error of the underlying io.Reader. After an error,
// every call of Next returns the same error. The caller of Next owns the memory of the returned record.
func (r *Reader) Next() (Frame, error) {
	if r.failed != nil {
		return Frame{}, r.failed
	}
	frame, err := r.read()
	r.failed = err
	return frame, err
}

func (r *Reader) read() (frame Frame, err error) {
	kind, payload, size, err := r.frame()
	if err != nil {
		return Frame{}, err
	}
	c := &cursor{rest: payload}
	switch {
	case r.ended:
		c.fail(errors.New("audit file has a frame after its end marker"))
	case kind == frameRecord:
		frame.Record = r.record(c)
	case kind == frameGap:
		frame.Gap = r.gap(c)
	case kind == frameEnd:
		frame.End = r.end(c)
	default:
		c.fail(fmt.Errorf("audit file has a frame of unknown kind %d", kind))
	}
	if err := c.end(); err != nil {
		return Frame{}, r.damaged(err)
	}
	r.offset += size
	return frame, nil
}

func (r *Reader) damaged(err error) error { return &DamageError{r.offset, err} }

// The method cut returns the error for an audit file that ends inside a frame (entry). The argument "part" of the
// method cut holds the bytes of the incomplete frame.
func (r *Reader) cut(err error, part []byte) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF) && len(part) > 0:
		return &TornError{r.offset}
	case errors.Is(err, io.EOF) && r.offset == 0:
		return &TornError{0}
	}
	return err
}

// The method frame reads one frame (entry) of the audit file, and verifies the checksums of the frame.
func (r *Reader) frame() (kind byte, payload []byte, size int64, err error) {
	head, length, err := r.head()
	if err != nil {
		return 0, nil, 0, err
	}
	body, err := readBody(r.in, int(length)+4)
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = &TornError{r.offset}
		}
		return 0, nil, 0, err
	}
	payload = body[:length:length]
	sum := crc32.Update(crc32.Checksum(head, castagnoli()), castagnoli(), payload)
	if sum != binary.LittleEndian.Uint32(body[length:]) {
		return 0, nil, 0, r.damaged(errChecksum)
	}
	return head[0], payload, int64(len(head) + len(body)), nil
}

// headBytes is the maximum number of bytes before the payload of a frame (entry) in an audit file: kind, length and
// their checksum.
const headBytes = 1 + 4 + 2

// The method head reads the kind and the length of a frame (entry of an audit file). The kind and the length precede
// the payload of the frame.
func (r *Reader) head() (head []byte, length uint64, err error) {
	seen, err := r.in.Peek(headBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	if len(seen) == 0 {
		return nil, 0, io.EOF
	}
	length, n := binary.Uvarint(seen[1:])
	switch {
	case n == 0 && len(seen) < headBytes, n > 0 && n <= 4 && len(seen) < 1+n+2:
		return nil, 0, &TornError{r.offset}
	case n <= 0 || n > 4 || length > MaxFrame, binary.LittleEndian.Uint16(seen[1+n:]) != shortSum(seen[:1+n]):
		return nil, 0, r.noHead()
	}
	head = append(head, seen[:1+n+2]...)
	_, err = r.in.Discard(len(head))
	return head, length, err
}

// noHead returns the error for a position of an audit file without a valid frame (entry). If only zeros follow the
// position, noHead returns a *TornError, because a file may end with zeros after a power failure.
func (r *Reader) noHead() error {
	for {
		b, err := r.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return &TornError{r.offset}
		}
		if err != nil {
			return err
		}
		if b != 0 {
			return r.damaged(errors.New("audit file has no valid frame at this position"))
		}
	}
}

// readBody reads a given number of bytes. Because a damaged file may state a wrong number, readBody allocates the
// memory in steps, while the file has more bytes.
func readBody(in io.Reader, size int) ([]byte, error) {
	const trusted = 1 << 20
	body := make([]byte, min(size, trusted))
	for have := 0; ; {
		n, err := io.ReadFull(in, body[have:])
		if have += n; err != nil || have == size {
			return body, err
		}
		body = append(body, make([]byte, min(size-have, have))...)
	}
}

func (r *Reader) readHeader(payload []byte) error {
	c := &cursor{rest: payload}
	format := c.uvarint()
	if c.err == nil && format != Format && format != FormatImages {
		return fmt.Errorf("audit file has format %d, but this version of capper reads formats %d and %d", format,
			Format, FormatImages)
	}
	h := &r.header
	h.Instance = c.text()
	h.Number = c.uvarint()
	h.Begun = c.instant()
	h.First = c.uvarint()
	h.Widening = c.millis()
	if format == FormatImages {
		kind, check := c.text(), c.text()
		if c.err == nil {
			var err error
			if h.IDs, err = parseIDs(kind, check); err != nil {
				c.fail(err)
			}
		}
	}
	r.at, r.next = h.Begun, h.First
	if c.err == nil && (!IsInstance(h.Instance) || h.Number == 0 || h.First == 0) {
		c.fail(fmt.Errorf("audit file header has invalid file number %d, instance %q or record number %d",
			h.Number, h.Instance, h.First))
	}
	return c.end()
}

func (c *cursor) instant() capping.Instant { return capping.Instant(c.below(uint64(capping.Never))) }

func (c *cursor) millis() time.Duration {
	return time.Duration(c.below(1<<40)) * time.Millisecond
}

func (r *Reader) gap(c *cursor) *Gap {
	g := &Gap{Lost: c.below(1 << 60), From: c.instant(), To: c.instant()}
	if g.Lost == 0 || r.next+g.Lost < r.next {
		c.fail(fmt.Errorf("audit file: the count of lost records is not valid: %d", g.Lost))
	}
	r.next += g.Lost
	return g
}

func (r *Reader) end(c *cursor) *End {
	end := &End{Records: c.uvarint(), Last: c.uvarint()}
	recovered := c.byte()
	if end.Recovered = recovered == 1; recovered > 1 {
		c.fail(fmt.Errorf("audit file: the end marker has invalid flags %d", recovered))
	}
	if end.Recovered {
		end.Closed = c.instant()
	}
	if so := r.So(); c.err == nil && (end.Records != so.Records || end.Last != so.Last) {
		c.fail(fmt.Errorf(
			"audit file: the end marker counts %d records up to number %d, but the file has %d records up to number %d",
			end.Records, end.Last, so.Records,
			so.Last))
	}
	r.ended = c.err == nil
	return end
}
