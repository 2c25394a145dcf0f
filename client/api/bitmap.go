package api

import (
	"bytes"
	"encoding/base64"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
)

// Bitmap is a set of users. In JSON, a Bitmap is a string: the base64 encoding of a roaring bitmap in the portable
// format.
type Bitmap struct{ *roaring.Bitmap }

// MarshalText encodes the bitmap. A nil bitmap is encoded as the empty set.
func (b Bitmap) MarshalText() ([]byte, error) {
	raw, err := b.OrEmpty().ToBytes()
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.AppendEncode(nil, raw), nil
}

// UnmarshalText decodes and validates the bitmap. UnmarshalText validates a bitmap because the roaring library may
// corrupt memory if a bitmap is invalid.
func (b *Bitmap) UnmarshalText(text []byte) error {
	raw, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil {
		return fmt.Errorf("bitmap: %w", err)
	}
	return b.UnmarshalBinary(raw)
}

// UnmarshalBinary decodes and validates a bitmap in the portable format.
func (b *Bitmap) UnmarshalBinary(raw []byte) error {
	b.Bitmap = roaring.New()
	n, err := b.ReadFrom(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("bitmap: %w", err)
	}
	if n != int64(len(raw)) {
		return fmt.Errorf("decode bitmap: %d extra bytes follow the end of the bitmap", int64(len(raw))-n)
	}
	if err := b.Validate(); err != nil {
		return fmt.Errorf("bitmap: %w", err)
	}
	return nil
}

// OrEmpty returns the embedded roaring bitmap, or an empty one if b.Bitmap is nil.
func (b Bitmap) OrEmpty() *roaring.Bitmap {
	if b.Bitmap == nil {
		return roaring.New()
	}
	return b.Bitmap
}
