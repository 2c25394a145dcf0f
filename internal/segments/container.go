package segments

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// The portable roaring format, https://github.com/RoaringBitmap/RoaringFormatSpec.
const (
	cookieNoRun     = 12346 // "no run container" cookie: a 32-bit container count follows
	cookieRun       = 12347 // low 16 bits of the cookie; the high 16 are containers - 1, a run flag bitset follows
	noOffsetBelow   = 4     // with run containers and fewer containers than this, there is no offset header
	maxContainers   = 1 << 16
	chunkIDs        = 1 << 16
	chunkWords      = chunkIDs / 64
	arrayMax        = 4096 // containers of up to this many ids are arrays, of more are bitmaps
	bitmapBytes     = chunkIDs / 8
	descriptorBytes = 4
)

// maxBitmapBytes is the size of the largest bitmap of 32-bit ids that a writer
// can produce: every container a bitmap, with its descriptor and offset.
const maxBitmapBytes = 8 + maxContainers/8 + maxContainers*(descriptorBytes+4+bitmapBytes)

type containerKind uint8

const (
	arrayKind containerKind = iota
	bitmapKind
	runKind
)

func (k containerKind) String() string {
	return [...]string{"array", "bitmap", "run"}[k]
}

// container is one container of a serialized bitmap: the ids key<<16 … key<<16 + 65535.
// data aliases the serialized bytes.
type container struct {
	key  uint16
	kind containerKind
	card int
	data []byte
}

// words is one chunk of 65,536 ids as a bitset.
type words [chunkWords]uint64

func (w *words) count() int {
	n := 0
	for _, x := range w {
		n += bits.OnesCount64(x)
	}
	return n
}

var errTruncated = errors.New("truncated")

// parseContainers reads a whole serialized bitmap, and believes nothing of it:
// every container is checked for order, bounds and cardinality, and not one
// byte may be left over. The containers alias raw. Linear in the size of raw.
func parseContainers(raw []byte) ([]container, error) {
	list, isRun, rest, err := parseHeader(raw)
	if err != nil {
		return nil, err
	}
	if isRun == nil || len(list) >= noOffsetBelow {
		if rest, err = checkOffsets(raw, rest, list, isRun); err != nil {
			return nil, err
		}
	}
	for i := range list {
		c := &list[i]
		size, err := payloadSize(c, rest)
		if err != nil {
			return nil, fmt.Errorf("container %d (ids from %d): %w", i, uint32(c.key)<<16, err)
		}
		c.data, rest = rest[:size], rest[size:]
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("container %d (ids from %d): %w", i, uint32(c.key)<<16, err)
		}
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("%d bytes after the end of the bitmap", len(rest))
	}
	return list, nil
}

// parseHeader reads the cookie, the run flags and the descriptors. isRun is
// nil when the bitmap has no run containers.
func parseHeader(raw []byte) (list []container, isRun, rest []byte, err error) {
	if len(raw) < 8 {
		return nil, nil, nil, errTruncated
	}
	cookie := binary.LittleEndian.Uint32(raw)
	var count uint32
	switch {
	case cookie == cookieNoRun:
		count, rest = binary.LittleEndian.Uint32(raw[4:]), raw[8:]
	case cookie&0xffff == cookieRun:
		count, rest = cookie>>16+1, raw[4:]
		flags := int(count+7) / 8
		if len(rest) < flags {
			return nil, nil, nil, errTruncated
		}
		isRun, rest = rest[:flags], rest[flags:]
		if spare := isRun[flags-1] >> ((count-1)%8 + 1); spare != 0 {
			return nil, nil, nil, fmt.Errorf("run flags of containers that are not there, beyond the %d there are", count)
		}
	default:
		return nil, nil, nil, fmt.Errorf("not a portable 32-bit roaring bitmap (cookie %d)", cookie)
	}
	if count > maxContainers {
		return nil, nil, nil, fmt.Errorf("%d containers, at most %d are possible", count, maxContainers)
	}
	if len(rest) < int(count)*descriptorBytes {
		return nil, nil, nil, errTruncated
	}
	list = make([]container, count)
	for i := range list {
		c := &list[i]
		c.key = binary.LittleEndian.Uint16(rest[4*i:])
		c.card = int(binary.LittleEndian.Uint16(rest[4*i+2:])) + 1
		c.kind = kindOf(isRun, i, c.card)
		if i > 0 && c.key <= list[i-1].key {
			return nil, nil, nil, fmt.Errorf("container %d: key %d after key %d", i, c.key, list[i-1].key)
		}
	}
	return list, isRun, rest[int(count)*descriptorBytes:], nil
}

func kindOf(isRun []byte, i, card int) containerKind {
	switch {
	case isRun != nil && isRun[i/8]>>(i%8)&1 == 1:
		return runKind
	case card > arrayMax:
		return bitmapKind
	default:
		return arrayKind
	}
}

// checkOffsets requires every stored offset to be the place where a sequential
// reader finds the container: readers that seek and readers that stream must
// see the same set.
func checkOffsets(raw, rest []byte, list []container, isRun []byte) ([]byte, error) {
	if len(rest) < 4*len(list) {
		return nil, errTruncated
	}
	offsets, rest := rest[:4*len(list)], rest[4*len(list):]
	at := len(raw) - len(rest)
	for i := range list {
		if got := binary.LittleEndian.Uint32(offsets[4*i:]); int(got) != at {
			return nil, fmt.Errorf("container %d: offset %d, its data is at %d", i, got, at)
		}
		size, err := payloadSize(&list[i], raw[at:])
		if err != nil {
			return nil, fmt.Errorf("container %d: %w", i, err)
		}
		at += size
	}
	return rest, nil
}

// payloadSize is the number of bytes that the container takes at the start of rest.
func payloadSize(c *container, rest []byte) (int, error) {
	size := bitmapBytes
	switch c.kind {
	case arrayKind:
		size = 2 * c.card
	case runKind:
		if len(rest) < 2 {
			return 0, errTruncated
		}
		size = 2 + 4*int(binary.LittleEndian.Uint16(rest))
	}
	if len(rest) < size {
		return 0, errTruncated
	}
	return size, nil
}

// check verifies order, bounds and cardinality of the container's data.
func (c *container) check() error {
	switch c.kind {
	case arrayKind:
		return checkArray(c.data)
	case bitmapKind:
		n := 0
		for i := 0; i < bitmapBytes; i += 8 {
			n += bits.OnesCount64(binary.LittleEndian.Uint64(c.data[i:]))
		}
		return c.checkCardinality(n)
	default:
		return c.checkRuns()
	}
}

func checkArray(data []byte) error {
	last := -1
	for i := 0; i+1 < len(data); i += 2 {
		v := int(binary.LittleEndian.Uint16(data[i:]))
		if v <= last {
			return fmt.Errorf("ids out of order: %d after %d", v, last)
		}
		last = v
	}
	return nil
}

func (c *container) checkRuns() error {
	n, last := 0, -2
	for i := 2; i < len(c.data); i += 4 {
		start, end := runAt(c.data, i)
		if start <= last+1 {
			return fmt.Errorf("runs out of order: one starts at %d, the one before ends at %d", start, last)
		}
		if end >= chunkIDs {
			return fmt.Errorf("a run ends at %d, beyond the container", end)
		}
		n, last = n+end-start+1, end
	}
	return c.checkCardinality(n)
}

func (c *container) checkCardinality(n int) error {
	if n != c.card {
		return fmt.Errorf("%d ids, its descriptor says %d", n, c.card)
	}
	return nil
}

// runAt decodes the run at data[i:]; end is its last id, inclusive.
func runAt(data []byte, i int) (start, end int) {
	start = int(binary.LittleEndian.Uint16(data[i:]))
	return start, start + int(binary.LittleEndian.Uint16(data[i+2:]))
}

// addTo sets the bits of the container's ids in w.
func (c *container) addTo(w *words) {
	switch c.kind {
	case arrayKind:
		for i := 0; i+1 < len(c.data); i += 2 {
			v := binary.LittleEndian.Uint16(c.data[i:])
			w[v>>6] |= 1 << (v & 63)
		}
	case bitmapKind:
		data := c.data[:bitmapBytes]
		for i := range w {
			w[i] |= binary.LittleEndian.Uint64(data[8*i:])
		}
	case runKind:
		for i := 2; i < len(c.data); i += 4 {
			start, end := runAt(c.data, i)
			w.addRange(start, end)
		}
	}
}

// addRange sets the bits start … end, both inclusive.
func (w *words) addRange(start, end int) {
	first, last := start>>6, end>>6
	head, tail := ^uint64(0)<<(start&63), ^uint64(0)>>(63-end&63)
	if first == last {
		w[first] |= head & tail
		return
	}
	w[first] |= head
	for i := first + 1; i < last; i++ {
		w[i] = ^uint64(0)
	}
	w[last] |= tail
}

// lowest and highest are the container's first and last id.
func (c *container) lowest() uint32 { return uint32(c.key)<<16 | uint32(c.edge(true)) }

func (c *container) highest() uint32 { return uint32(c.key)<<16 | uint32(c.edge(false)) }

func (c *container) edge(low bool) int {
	switch {
	case c.kind == arrayKind && low:
		return int(binary.LittleEndian.Uint16(c.data))
	case c.kind == arrayKind:
		return int(binary.LittleEndian.Uint16(c.data[len(c.data)-2:]))
	case c.kind == runKind && low:
		start, _ := runAt(c.data, 2)
		return start
	case c.kind == runKind:
		_, end := runAt(c.data, len(c.data)-4)
		return end
	case low:
		i := 0
		for binary.LittleEndian.Uint64(c.data[i:]) == 0 {
			i += 8
		}
		return i*8 + bits.TrailingZeros64(binary.LittleEndian.Uint64(c.data[i:]))
	default:
		i := bitmapBytes - 8
		for binary.LittleEndian.Uint64(c.data[i:]) == 0 {
			i -= 8
		}
		return i*8 + 63 - bits.LeadingZeros64(binary.LittleEndian.Uint64(c.data[i:]))
	}
}
