package bitmap

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// The constants cookieNoRun to offsetBytes come from the portable roaring format,
// https://github.com/RoaringBitmap/RoaringFormatSpec.
const (
	cookieNoRun     = 12346 // cookie (magic number) of a bitmap without runs; a 32-bit container count follows
	cookieRun       = 12347 // low 16 bits of the cookie; high 16 bits: containers - 1; run flags follow
	noOffsetBelow   = 4     // a bitmap with run containers and fewer containers than 4 has no offset header
	maxContainers   = 1 << 16
	containerIDs    = 1 << 16
	containerWords  = containerIDs / 64
	arrayMax        = 4096 // containers with up to 4,096 ids are arrays; larger containers are bitmaps
	bitmapBytes     = containerIDs / 8
	descriptorBytes = 4
	offsetBytes     = 4
)

// MaxBytes is the size of the largest possible encoded bitmap, in bytes. In the largest encoded bitmap, every container
// has 65,536 bits, a descriptor and an offset.
const MaxBytes = 8 + maxContainers/8 + maxContainers*(descriptorBytes+offsetBytes+bitmapBytes)

type containerKind uint8

const (
	arrayKind containerKind = iota
	bitmapKind
	runKind
)

func (k containerKind) String() string {
	return [...]string{"array", "bitmap", "run"}[k]
}

// A form describes the encoding of a container (an array, a bitmap or runs) and its number of ids.
type form struct {
	key  uint16 // the upper 16 bits of the ids
	kind containerKind
	card int
	runs int // number of runs in a run container
}

// The function "smallest" returns the form in which a container takes the fewest bytes. If runs take fewer bytes than
// an array and a bitmap, the form is runs. Otherwise, the form is an array for up to 4,096 ids, and a bitmap of 65,536
// bits for more ids.
func smallest(key uint16, card, runs int) form {
	switch {
	case 2+4*runs < min(2*card, bitmapBytes):
		return form{key: key, kind: runKind, card: card, runs: runs}
	case card <= arrayMax:
		return form{key: key, kind: arrayKind, card: card}
	default:
		return form{key: key, kind: bitmapKind, card: card}
	}
}

// The method "size" returns the size of a container that is encoded in this form, in bytes.
func (f *form) size() int {
	switch f.kind {
	case runKind:
		return 2 + 4*f.runs
	case arrayKind:
		return 2 * f.card
	default:
		return bitmapBytes
	}
}

// A container represents one container of an encoded bitmap: ids with the same upper 16 bits. The data of a container
// shares memory with the encoded bytes.
type container struct {
	form
	at   uint32 // offset of data in the encoded bytes
	data []byte
}

// containerSize is the size of a container in memory without its data, in bytes.
const containerSize = 56

// The method "check" returns an error if the order, the bounds or the number of ids in the container's data is wrong.
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
			return fmt.Errorf("ids in a bitmap container must ascend, but %d follows %d", v, last)
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
			return fmt.Errorf(
				"runs of ids overlap or are out of order: a run starts at %d, but the previous run ends at %d",
				start, last)
		}
		if end >= containerIDs {
			return fmt.Errorf("a run of ids ends at %d, beyond the end of its bitmap container", end)
		}
		n, last = n+end-start+1, end
	}
	return c.checkCardinality(n)
}

func (c *container) checkCardinality(n int) error {
	if n != c.card {
		return fmt.Errorf("bitmap container has %d ids, but its descriptor says %d", n, c.card)
	}
	return nil
}

// runAt decodes the run at data[i:]. The result "end" is the last id of the run, and not the id after the last one.
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

// appendTo appends the container's ids to the slice "ids" in ascending order.
func (c *container) appendTo(ids []uint32) []uint32 {
	base := uint32(c.key) << 16
	switch c.kind {
	case arrayKind:
		for i := 0; i+1 < len(c.data); i += 2 {
			ids = append(ids, base|uint32(binary.LittleEndian.Uint16(c.data[i:])))
		}
	case bitmapKind:
		for i := 0; i < bitmapBytes; i += 8 {
			for x := binary.LittleEndian.Uint64(c.data[i:]); x != 0; x &= x - 1 {
				ids = append(ids, base|uint32(i*8+bits.TrailingZeros64(x)))
			}
		}
	case runKind:
		for i := 2; i < len(c.data); i += 4 {
			for id, end := runAt(c.data, i); id <= end; id++ {
				ids = append(ids, base|uint32(id))
			}
		}
	}
	return ids
}

// The method "lowest" returns the container's lowest id.
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
