package bitmap

import (
	"encoding/binary"
	"math/bits"
)

// encodeContainer picks the smallest container for the ids in w: runs when they
// are smaller than both others, else an array up to 4,096 ids, else a bitmap.
// A card of 0 means that w is empty.
func encodeContainer(key uint16, w *words) container {
	c := container{key: key, card: w.count()}
	plain := min(2*c.card, bitmapBytes)
	runs := w.runs()
	switch {
	case c.card == 0:
	case 2+4*runs < plain:
		c.kind, c.data = runKind, w.encodeRuns(runs)
	case c.card <= arrayMax:
		c.kind, c.data = arrayKind, w.encodeArray(c.card)
	default:
		c.kind, c.data = bitmapKind, make([]byte, bitmapBytes)
		for i, x := range w {
			binary.LittleEndian.PutUint64(c.data[8*i:], x)
		}
	}
	return c
}

func (w *words) encodeArray(card int) []byte {
	data := make([]byte, 0, 2*card)
	for i, x := range w {
		for ; x != 0; x &= x - 1 {
			data = binary.LittleEndian.AppendUint16(data, uint16(i<<6+bits.TrailingZeros64(x)))
		}
	}
	return data
}

func (w *words) encodeRuns(runs int) []byte {
	data := binary.LittleEndian.AppendUint16(make([]byte, 0, 2+4*runs), uint16(runs))
	for at := w.next(0, 0); at < containerIDs; {
		end := w.next(at, ^uint64(0)) // first id that is not in the set
		data = binary.LittleEndian.AppendUint16(data, uint16(at))
		data = binary.LittleEndian.AppendUint16(data, uint16(end-1-at))
		at = w.next(end, 0)
	}
	return data
}

// assemble serializes the containers, which must be in order of their keys,
// and returns the bitmap that aliases the new bytes.
func assemble(list []container) *Bitmap {
	raw := header(list)
	for i := range list {
		start := len(raw)
		raw = append(raw, list[i].data...)
		list[i].data = raw[start:len(raw):len(raw)]
	}
	return newBitmap(raw, list)
}

// header returns cookie, run flags, descriptors and offsets, with room for the containers.
func header(list []container) []byte {
	hasRuns := false
	size := 8 + maxContainers/8
	for i := range list {
		hasRuns = hasRuns || list[i].kind == runKind
		size += descriptorBytes + 4 + len(list[i].data)
	}
	raw := make([]byte, 0, size)
	if hasRuns {
		raw = binary.LittleEndian.AppendUint32(raw, cookieRun|uint32(len(list)-1)<<16)
		flags := make([]byte, (len(list)+7)/8)
		for i := range list {
			if list[i].kind == runKind {
				flags[i/8] |= 1 << (i % 8)
			}
		}
		raw = append(raw, flags...)
	} else {
		raw = binary.LittleEndian.AppendUint32(raw, cookieNoRun)
		raw = binary.LittleEndian.AppendUint32(raw, uint32(len(list)))
	}
	for i := range list {
		raw = binary.LittleEndian.AppendUint16(raw, list[i].key)
		raw = binary.LittleEndian.AppendUint16(raw, uint16(list[i].card-1))
	}
	if !hasRuns || len(list) >= noOffsetBelow {
		at := len(raw) + 4*len(list)
		for i := range list {
			raw = binary.LittleEndian.AppendUint32(raw, uint32(at))
			at += len(list[i].data)
		}
	}
	return raw
}
