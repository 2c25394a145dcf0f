package api

import (
	"bytes"
	"encoding/base64"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
)

// Bitmap is a set of users as a JSON string: base64 of a roaring bitmap in its
// portable format.
type Bitmap struct{ *roaring.Bitmap }

// MarshalText writes it; nil is the empty set.
func (b Bitmap) MarshalText() ([]byte, error) {
	raw, err := b.OrEmpty().ToBytes()
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.AppendEncode(nil, raw), nil
}

// UnmarshalText trusts nothing: the library may corrupt memory on a bitmap
// that has not been validated.
func (b *Bitmap) UnmarshalText(text []byte) error {
	raw, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil {
		return fmt.Errorf("bitmap: %w", err)
	}
	return b.UnmarshalBinary(raw)
}

// UnmarshalBinary reads the portable format itself, and trusts nothing either.
func (b *Bitmap) UnmarshalBinary(raw []byte) error {
	b.Bitmap = roaring.New()
	n, err := b.ReadFrom(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("bitmap: %w", err)
	}
	if n != int64(len(raw)) {
		return fmt.Errorf("bitmap: %d extra bytes after the end", int64(len(raw))-n)
	}
	if err := b.Validate(); err != nil {
		return fmt.Errorf("bitmap: %w", err)
	}
	return nil
}

// OrEmpty is the bitmap, or an empty one for nil.
func (b Bitmap) OrEmpty() *roaring.Bitmap {
	if b.Bitmap == nil {
		return roaring.New()
	}
	return b.Bitmap
}
