package bitmap

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// encodeContainer encodes the ids in w as a container (65,536 possible ids) in its smallest form. If w is empty, the
// field "card" of the returned container is 0.
func encodeContainer(key uint16, w *words) container {
	c := container{form: smallest(key, w.count(), w.runs())}
	if c.card == 0 {
		return c
	}
	c.data = make([]byte, 0, c.size())
	switch c.kind {
	case runKind:
		c.data = w.appendRuns(c.data, c.runs)
	case arrayKind:
		c.data = w.appendArray(c.data)
	default:
		for _, x := range w {
			c.data = binary.LittleEndian.AppendUint64(c.data, x)
		}
	}
	return c
}

func (w *words) appendArray(data []byte) []byte {
	for i, x := range w {
		for ; x != 0; x &= x - 1 {
			data = binary.LittleEndian.AppendUint16(data, uint16(i<<6+bits.TrailingZeros64(x)))
		}
	}
	return data
}

func (w *words) appendRuns(data []byte, runs int) []byte {
	data = binary.LittleEndian.AppendUint16(data, uint16(runs))
	for at := w.next(0, 0); at < containerIDs; {
		end := w.next(at, ^uint64(0)) // first id after the run
		data = binary.LittleEndian.AppendUint16(data, uint16(at))
		data = binary.LittleEndian.AppendUint16(data, uint16(end-1-at))
		at = w.next(end, 0)
	}
	return data
}

// The function "assemble" encodes the containers, and returns a Bitmap that shares the encoded bytes. The containers
// must be in ascending order of their keys (upper 16 bits of the ids).
func assemble(list []container) *Bitmap {
	forms := make([]form, len(list))
	size := 0
	for i := range list {
		forms[i] = list[i].form
		size += descriptorBytes + offsetBytes + list[i].size()
	}
	raw := appendHeader(make([]byte, 0, 8+maxContainers/8+size), forms)
	for i := range list {
		start := len(raw)
		raw = append(raw, list[i].data...)
		list[i].data = raw[start:len(raw):len(raw)]
	}
	return newBitmap(raw, list)
}

// appendHeader appends the header of an encoded bitmap: the cookie, the run flags, the descriptors and the offsets. The
// stored offset of a container is the number of bytes from the beginning of the header.
func appendHeader(dst []byte, list []form) []byte {
	start := len(dst)
	hasRuns := slices.ContainsFunc(list, func(f form) bool { return f.kind == runKind })
	if hasRuns {
		dst = binary.LittleEndian.AppendUint32(dst, cookieRun|uint32(len(list)-1)<<16)
		dst = appendRunFlags(dst, list)
	} else {
		dst = binary.LittleEndian.AppendUint32(dst, cookieNoRun)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(list)))
	}
	for i := range list {
		dst = binary.LittleEndian.AppendUint16(dst, list[i].key)
		dst = binary.LittleEndian.AppendUint16(dst, uint16(list[i].card-1))
	}
	if hasRuns && len(list) < noOffsetBelow {
		return dst
	}
	at := len(dst) - start + offsetBytes*len(list)
	for i := range list {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(at))
		at += list[i].size()
	}
	return dst
}

func appendRunFlags(dst []byte, list []form) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, (len(list)+7)/8)...)
	for i := range list {
		if list[i].kind == runKind {
			dst[start+i/8] |= 1 << (i % 8)
		}
	}
	return dst
}
