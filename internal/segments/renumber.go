package segments

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"capper/internal/bitmap"
	"capper/internal/dictionary"
	"capper/internal/parallel"
)

// A Renumbering converts bitmaps of an earlier generation (published version) to the user numbers of a later
// generation, for comparisons. Users whom the later generation lacks get numbers above all numbers of the later
// generation.
type Renumbering struct{ to []uint32 }

var errTooManyNumbers = errors.New(
	"two generations (published versions) together must have at most 2^32 different user ids")

// NewRenumbering returns the Renumbering from an earlier dictionary to a later dictionary.
func NewRenumbering(earlier, later *Dictionary) (*Renumbering, error) {
	r := &Renumbering{to: make([]uint32, 0, earlier.Len())}
	next := uint64(later.Len())
	for _, number := range dictionary.Merge(earlier.Dictionary, later.Dictionary) {
		if number == dictionary.Unknown {
			if next > dictionary.Unknown {
				return nil, errTooManyNumbers
			}
			number = uint32(next)
			next++
		}
		r.to = append(r.to, number)
	}
	runtime.KeepAlive(earlier)
	runtime.KeepAlive(later)
	return r, nil
}

// The method Bitmap converts a bitmap of the earlier generation (published version) to the user numbers of the later
// generation.
func (r *Renumbering) Bitmap(b *bitmap.Bitmap) *bitmap.Bitmap {
	var users bitmap.Set
	for number := range b.All() {
		users.Add(r.to[number])
	}
	return users.Bitmap()
}

// RenumberedBy returns the generation (published version) with its bitmaps converted to the user numbers of another
// dictionary. The returned generation is only for comparisons, because its manifest still describes the stored bitmaps.
// If both dictionaries are equal, or if ids are dense (32-bit integers), RenumberedBy returns g itself.
func (g *Generation) RenumberedBy(later *Dictionary) (*Generation, error) {
	if later == nil || g.Dictionary == nil || g.Dictionary.sha256 == later.sha256 {
		return g, nil
	}
	n, err := g.renumberedAs(later, nil)
	if err != nil {
		return nil, err
	}
	n.Dictionary = nil
	return n, nil
}

// RenumberedName appends the id of the user with the given number. If RenumberedBy has converted the bitmaps, the
// number is a user number in the converted bitmaps. If the generation (published version) has no ids, RenumberedName
// appends "image:" and the 16 hexadecimal digits of the image (64-bit number that stands for the id).
func (g *Generation) RenumberedName(dst []byte, number uint32) []byte {
	if g.by != nil {
		g, number = g.was, uint32(slices.Index(g.by.to, number))
	}
	named, err := g.ID(dst, number)
	if err != nil {
		return fmt.Appendf(dst, "image:%016x", g.Dictionary.Image(number))
	}
	return named
}

// eachBitmap calls the function "of" for each bitmap of a list, and returns the list of the results. For a nil bitmap,
// the result is nil.
func eachBitmap(list []*bitmap.Bitmap, of func(*bitmap.Bitmap) *bitmap.Bitmap) []*bitmap.Bitmap {
	results := make([]*bitmap.Bitmap, len(list))
	parallel.OnAllCores(len(list), func(i int) {
		if list[i] != nil {
			results[i] = of(list[i])
		}
	})
	return results
}
