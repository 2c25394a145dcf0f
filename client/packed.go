package client

import (
	"encoding/binary"
	"encoding/json"

	"github.com/RoaringBitmap/roaring/v2"
)

// The type Packed holds user ids as bytes without separators. Packed ids take about a third of the space of ids as
// strings. In packed form, a UUID takes 16 bytes and a uint64 id takes 8 bytes, big endian. Dense ids and text ids have
// no packed form.
type Packed struct {
	Bytes []byte
	Width int // bytes of an id
}

// PackUUIDs returns UUIDs in packed form.
func PackUUIDs[UUID ~[16]byte](ids []UUID) *Packed {
	p := &Packed{Bytes: make([]byte, 0, 16*len(ids)), Width: 16}
	for _, id := range ids {
		raw := [16]byte(id)
		p.Bytes = append(p.Bytes, raw[:]...)
	}
	return p
}

// PackUint64s returns uint64 ids in packed form.
func PackUint64s(ids []uint64) *Packed {
	p := &Packed{Bytes: make([]byte, 0, 8*len(ids)), Width: 8}
	for _, id := range ids {
		p.Bytes = binary.BigEndian.AppendUint64(p.Bytes, id)
	}
	return p
}

// Len returns the number of ids.
func (p *Packed) Len() int {
	if p.Width < 1 {
		return 0
	}
	return len(p.Bytes) / p.Width
}

// ID returns the bytes of the id at the given position. The bitmaps in a response to a request with packed ids hold
// positions of ids in the request.
func (p *Packed) ID(position int) []byte { return p.Bytes[p.Width*position : p.Width*(position+1)] }

// The method "bytes" returns the packed ids, or nil for a nil p.
func (p *Packed) bytes() []byte {
	if p == nil {
		return nil
	}
	return p.Bytes
}

// The method "pick" returns a Packed with the ids at the given positions.
func (p *Packed) pick(positions []uint32) *Packed {
	picked := &Packed{Bytes: make([]byte, 0, p.Width*len(positions)), Width: p.Width}
	for _, position := range positions {
		picked.Bytes = append(picked.Bytes, p.ID(int(position))...)
	}
	return picked
}

// The method "slice" returns a Packed with the ids at the positions from first to last-1.
func (p *Packed) slice(first, last int) *Packed {
	return &Packed{Bytes: p.Bytes[p.Width*first : p.Width*last], Width: p.Width}
}

// The function "among" converts positions in a part of a request to positions in the whole request. The element
// whole[i] is the position, in the whole request, of the id at position i of the part.
func among(whole []uint32, positions *roaring.Bitmap) *roaring.Bitmap {
	found := make([]uint32, 0, positions.GetCardinality())
	for _, position := range positions.ToArray() {
		found = append(found, whole[position])
	}
	return roaring.BitmapOf(found...)
}

// The type form is the form in which a response about an audience names users: bitmaps, packed ids or strings.
type form int

const (
	inBitmaps form = iota // a response about dense ids
	inPacked              // a response about UUIDs or uint64 ids
	inStrings             // a response about text ids
)

// formOf returns the form in which a response names users. If the JSON response has a key that is the argument "name"
// followed by "_packed", the response names users by packed ids. If the JSON response has the key in the argument
// "list", the response names users by strings. If the response has no key for packed ids or strings, it names users by
// bitmaps. To find the keys, formOf looks only at the outermost JSON object.
func formOf(answer []byte, name, list string) (form, error) {
	var keys map[string]ignored
	if err := json.Unmarshal(answer, &keys); err != nil {
		return inBitmaps, err
	}
	if _, ok := keys[name+"_packed"]; ok {
		return inPacked, nil
	}
	if _, ok := keys[list]; ok {
		return inStrings, nil
	}
	return inBitmaps, nil
}

// The type "ignored" represents a JSON value that need not be decoded.
type ignored struct{}

// UnmarshalJSON accepts every value.
func (*ignored) UnmarshalJSON([]byte) error { return nil }

// The function "decoded" decodes a response and converts it with the function in the argument "of".
func decoded[Answer, Result any](content []byte, of func(*Answer) *Result) (*Result, error) {
	var answer Answer
	if err := decode(content, &answer); err != nil {
		return nil, err
	}
	return of(&answer), nil
}
