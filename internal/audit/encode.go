package audit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"capper/internal/bitmap"
	"capper/internal/capping"
)

// An Encoder encodes the frames (entries) of one audit file, in the order of the file. An Encoder is not safe for
// concurrent use. The caller must write every frame to the file, because readers could not decode the later frames
// otherwise.
type Encoder struct {
	header   Header
	at       capping.Instant // time of the previous record
	next     uint64          // next sequence number
	records  uint64
	names    dictionary
	messages dictionary
	payload  []byte
}

// NewEncoder begins an audit file, and appends the file's first bytes to dst. NewEncoder does not check the header.
// Readers reject a header with an invalid instance, or with the file number or first sequence number 0.
func NewEncoder(dst []byte, h Header) (*Encoder, []byte) {
	e := &Encoder{header: h, at: h.Begun, next: h.First}
	p := appendUvarint(nil, uint64(h.IDs.format()))
	p = appendText(p, h.Instance)
	p = appendUvarint(p, h.Number)
	p = appendUvarint(p, uint64(h.Begun))
	p = appendUvarint(p, h.First)
	p = appendUvarint(p, uint64(h.Widening.Milliseconds()))
	if !h.IDs.Dense() {
		p = appendText(p, h.IDs.Kind.String())
		p = appendText(p, h.IDs.Check)
	}
	return e, appendFrame(append(dst, magic...), frameHeader, p)
}

// ErrTooLarge reports that an audit record has more than MaxFrame bytes, or a text with more than MaxText bytes.
var ErrTooLarge = errors.New("audit record is too large for an audit file")

// AppendRecord appends a record and returns the record's sequence number, which is the next number of the audit file.
// AppendRecord ignores the instance and the sequence number in r. If AppendRecord returns an error, it has appended
// nothing.
func (e *Encoder) AppendRecord(dst []byte, r *Record) ([]byte, uint64, error) {
	if r.SizeBound() > MaxFrame {
		return dst, 0, ErrTooLarge
	}
	if err := check(r, !e.header.IDs.Dense()); err != nil {
		return dst, 0, err
	}
	e.payload = e.appendRecord(e.payload[:0], r)
	dst = appendFrame(dst, frameRecord, e.payload)
	sequence := e.next
	e.at, e.next, e.records = r.At, e.next+1, e.records+1
	if cap(e.payload) > 1<<20 {
		e.payload = nil // frees the memory of a large call, because most calls are small
	}
	return dst, sequence, nil
}

// AppendGap appends a gap frame (entry about lost records) with the number of records that were lost at this position.
// Each lost record uses up a sequence number, so that readers notice the loss.
func (e *Encoder) AppendGap(dst []byte, g Gap) []byte {
	p := appendUvarint(nil, g.Lost)
	p = appendUvarint(p, uint64(g.From))
	p = appendUvarint(p, uint64(g.To))
	e.next += g.Lost
	return appendFrame(dst, frameGap, p)
}

// AppendEnd appends the end frame (last entry) of an audit file. The caller of AppendEnd must append nothing after the
// end frame.
func (e *Encoder) AppendEnd(dst []byte) []byte {
	return AppendEnd(dst, End{Records: e.records, Last: e.next - 1})
}

// The method Records returns the number of records in the audit file so far.
func (e *Encoder) Records() uint64 { return e.records }

// The method Next returns the sequence number that the next record will get.
func (e *Encoder) Next() uint64 { return e.next }

// AppendEnd appends the end frame (last entry) to an audit file whose writer died before it wrote the end frame.
func AppendEnd(dst []byte, end End) []byte {
	p := appendUvarint(nil, end.Records)
	p = appendUvarint(p, end.Last)
	p = append(p, flag(end.Recovered, 1))
	if end.Recovered {
		p = appendUvarint(p, uint64(end.Closed))
	}
	return appendFrame(dst, frameEnd, p)
}

// appendFrame appends a frame (entry) of an audit file. A frame consists of the kind, the length, a checksum of both,
// the payload, and a checksum of the whole frame.
func appendFrame(dst []byte, kind byte, payload []byte) []byte {
	start := len(dst)
	dst = append(dst, kind)
	dst = appendUvarint(dst, uint64(len(payload)))
	dst = binary.LittleEndian.AppendUint16(dst, shortSum(dst[start:]))
	dst = append(dst, payload...)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli()))
}

// SizeBound returns an upper bound for the size of the record in an audit file, in bytes.
func (r *Record) SizeBound() int64 {
	texts := len(r.Audience) + len(r.Message.ID) + len(r.Client) + len(r.Key) + len(r.Generation) + len(r.Config)
	if r.Change != nil {
		texts += len(r.Change.Set) + len(r.Change.RequestID)
	}
	size := int64(512 + texts + 512*(len(r.Groups)+len(r.Segments)+len(r.Shadow)))
	for i := range r.Groups {
		size += int64(len(r.Groups[i].encoded))
		if users := r.Groups[i].Users; users != nil {
			size += int64(len(users.Bytes()))
		} else if images := r.Groups[i].Images; images != nil {
			size += int64(imagesBound(len(images)))
		}
	}
	return size
}

// The function check returns an error if an audit file cannot hold the record. The argument "wide" of the function
// check is true if the file holds id images (64-bit hashes) instead of dense ids.
func check(r *Record, wide bool) error {
	texts := []string{r.Message.ID, r.Message.Namespace, r.Client, r.Key, r.Generation, r.Config, r.Audience}
	if r.Change != nil {
		texts = append(texts, r.Change.Set, r.Change.RequestID)
	}
	for _, text := range texts {
		if len(text) > MaxText {
			return ErrTooLarge
		}
	}
	switch {
	case r.Kind < Filter || r.Kind > Change:
		return fmt.Errorf("audit record has unknown kind %d", r.Kind)
	case r.At < 0 || r.Took < 0:
		return fmt.Errorf("audit record has invalid time %d or duration %v", r.At, r.Took)
	case (r.Kind == Pace) != (r.Permits != nil):
		return errors.New(
			"audit record: the field Permits must be set for a call for permits, and unset for other records")
	case (r.Kind == Change) != (r.Change != nil):
		return errors.New(
			"audit record: the field Change must be set for a change of a set, and unset for other records")
	case r.Change != nil && (r.Change.Set == "" || r.Change.At < 0):
		return fmt.Errorf("audit record of a set change has an invalid set name %q or an invalid time %d",
			r.Change.Set, r.Change.At)
	}
	for i := range r.Groups {
		if err := r.Groups[i].check(wide); err != nil {
			return fmt.Errorf("group %d: %w", i, err)
		}
	}
	return nil
}

// flagExempt and flagAudience are the bits of the flags in a stored audit record.
const (
	flagExempt   = 1 << 0
	flagAudience = 1 << 1
	knownFlags   = flagExempt | flagAudience
)

func flag(is bool, bit byte) byte {
	if is {
		return bit
	}
	return 0
}

func (e *Encoder) appendRecord(p []byte, r *Record) []byte {
	p = append(p, byte(r.Kind), flag(r.Exempt, flagExempt)|flag(r.Audience != "", flagAudience))
	p = appendUvarint(p, e.next-e.header.First)
	p = appendVarint(p, int64(r.At-e.at))
	p = appendUvarint(p, uint64(r.Took.Milliseconds()))
	p = e.messages.append(p, r.Message.ID)
	for _, name := range []string{r.Message.Namespace, r.Client, r.Key, r.Generation, r.Config} {
		p = e.names.append(p, name)
	}
	p = append(p, byte(r.Channel))
	if r.Audience != "" {
		p = e.names.append(p, r.Audience)
	}
	if r.Kind == Pace {
		return e.appendPermits(p, r.Permits)
	}
	if r.Kind == Change {
		p = e.names.append(p, r.Change.Set)
		p = appendUvarint(p, uint64(r.Change.At))
		p = appendText(p, r.Change.RequestID)
	}
	p = appendUvarint(p, uint64(len(r.Groups)))
	for i := range r.Groups {
		p = e.appendGroup(p, &r.Groups[i])
	}
	if r.Kind == Filter {
		p = e.appendSegments(p, r.Segments)
		p = e.appendCounts(p, r.Shadow)
	}
	return p
}

func (e *Encoder) appendGroup(p []byte, g *Group) []byte {
	p = append(p, byte(g.Outcome)|byte(g.By)<<4)
	if g.Outcome == Denied {
		p = e.names.append(p, g.Limit)
	}
	if g.Outcome == Denied && g.By == capping.BySuppression {
		p = e.names.append(p, g.Set)
	}
	if g.encoded != nil {
		return append(p, g.encoded...)
	}
	if g.Images != nil {
		return appendImages(p, g.Images)
	}
	return appendUsers(p, g.Users)
}

// fewUsers is the maximum number of users that a record stores as a list, because a short list takes less space than a
// bitmap.
const fewUsers = 8

// appendUsers appends a set of users, either as a bitmap or as a list. The first number is even for a bitmap, and odd
// for a list. For a bitmap, appendUsers writes twice the size of the bitmap in bytes, and then the bitmap. For a list,
// appendUsers writes twice the number of users plus 1, and then a distance for each user. The distance is the number of
// ids between the previous user in the list and the user.
func appendUsers(p []byte, users *bitmap.Bitmap) []byte {
	if users.Cardinality() > fewUsers {
		raw := users.Bytes()
		return append(appendUvarint(p, uint64(len(raw))<<1), raw...)
	}
	return appendFew(p, users.IDs())
}

// appendSorted works like appendUsers, for a slice of ids in ascending order.
func appendSorted(p []byte, ids []uint32) []byte {
	if len(ids) <= fewUsers {
		return appendFew(p, ids)
	}
	// The size stands before the bitmap, and is known only after encoding. The code therefore reserves space for the
	// longest size.
	start := len(p)
	p = append(p, make([]byte, binary.MaxVarintLen32)...)
	p = bitmap.AppendSorted(p, ids)
	raw := p[start+binary.MaxVarintLen32:]
	size := binary.PutUvarint(p[start:], uint64(len(raw))<<1)
	return p[:start+size+copy(p[start+size:], raw)]
}

func appendFew(p []byte, ids []uint32) []byte {
	p = appendUvarint(p, uint64(len(ids))<<1|1)
	next := uint32(0)
	for _, id := range ids {
		p = appendUvarint(p, uint64(id-next))
		next = id + 1
	}
	return p
}

func (e *Encoder) appendSegments(p []byte, segments []SegmentCount) []byte {
	p = appendUvarint(p, uint64(len(segments)))
	for i := range segments {
		s := &segments[i]
		p = e.names.append(p, s.Name)
		for _, n := range []int{s.Requested, s.Allowed, s.Denied, s.Unavailable} {
			p = appendUvarint(p, uint64(n))
		}
	}
	return p
}

func (e *Encoder) appendCounts(p []byte, counts []Count) []byte {
	p = appendUvarint(p, uint64(len(counts)))
	for _, c := range counts {
		p = appendUvarint(e.names.append(p, c.Name), uint64(c.Users))
	}
	return p
}

func (e *Encoder) appendPermits(p []byte, permits *Permits) []byte {
	p = appendUvarint(p, uint64(len(permits.Pacers)))
	for _, name := range permits.Pacers {
		p = e.names.append(p, name)
	}
	p = appendUvarint(p, uint64(permits.Asked))
	p = appendUvarint(p, uint64(permits.Granted))
	for _, d := range []time.Duration{permits.First, permits.Last} {
		p = appendVarint(p, d.Microseconds())
	}
	return e.names.append(p, permits.Limited)
}
