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

// Renumbering converts bitmaps of an earlier generation to the user numbers of a later generation, so that the bitmaps
// of both can be compared. Users who are only in the earlier generation get numbers above all numbers of the later
// generation.
type Renumbering struct{ to []uint32 }

var errTooManyNumbers = errors.New("two generations together must have at most 2^32 different ids")

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

// Bitmap converts a bitmap of the earlier generation, so that it has the user numbers of the later generation.
func (r *Renumbering) Bitmap(b *bitmap.Bitmap) *bitmap.Bitmap {
	var users bitmap.Set
	for number := range b.All() {
		users.Add(r.to[number])
	}
	return users.Bitmap()
}

// RenumberedBy returns the generation with its bitmaps converted to the user numbers of another dictionary. The
// generation that RenumberedBy returns serves only for comparisons, because its manifest is unchanged and describes the
// stored bitmaps. If both dictionaries give the same numbers, RenumberedBy returns g itself.
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

// RenumberedName appends the id of the user who has the given number after RenumberedBy. If the generation cannot
// convert the user to an id, RenumberedName appends "image:" and the 16 hexadecimal digits of its image (64-bit number
// that stands for the id).
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

// eachBitmap calls the function in the argument "of" for each bitmap of a list, and returns the list of the results.
// For a nil bitmap, the result is nil.
func eachBitmap(list []*bitmap.Bitmap, of func(*bitmap.Bitmap) *bitmap.Bitmap) []*bitmap.Bitmap {
	results := make([]*bitmap.Bitmap, len(list))
	parallel.OnAllCores(len(list), func(i int) {
		if list[i] != nil {
			results[i] = of(list[i])
		}
	})
	return results
}
