package bitmap

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// A Bitmap is a checked, immutable set of 32-bit ids in the portable roaring format. A Bitmap shares memory with the
// encoded bytes.
type Bitmap struct {
	raw        []byte
	containers []container
	table      []place // see tableOf
	card       uint64
}

// newBitmap returns the bitmap with the given containers. The last bytes of the slice "raw" must be the data of the
// containers.
func newBitmap(raw []byte, list []container) *Bitmap {
	b := &Bitmap{raw: raw, containers: list}
	at := len(raw)
	for i := len(list) - 1; i >= 0; i-- {
		at -= len(list[i].data)
		list[i].at = uint32(at)
		b.card += uint64(list[i].card)
	}
	b.table = tableOf(list)
	return b
}

// Bytes returns the encoded bitmap. The caller must not change the bytes.
func (b *Bitmap) Bytes() []byte { return b.raw }

// SizeBytes returns the size of the bitmap in memory in bytes: the encoded bytes and the index of containers.
func (b *Bitmap) SizeBytes() int64 {
	return int64(len(b.raw) + containerSize*len(b.containers) + placeSize*len(b.table))
}

// Cardinality returns the number of ids in the bitmap.
func (b *Bitmap) Cardinality() uint64 { return b.card }

// Bounds returns the lowest and the highest id of the bitmap. For an empty bitmap, the result "ok" is false.
func (b *Bitmap) Bounds() (lowest, highest uint32, ok bool) {
	if len(b.containers) == 0 {
		return 0, 0, false
	}
	return b.containers[0].lowest(), b.containers[len(b.containers)-1].highest(), true
}

// SHA256 returns the SHA-256 of the encoded bitmap in lower-case hex.
func (b *Bitmap) SHA256() string {
	sum := sha256.Sum256(b.raw)
	return hex.EncodeToString(sum[:])
}

// Containers returns the number of containers of each kind: "array", "bitmap" or "run".
func (b *Bitmap) Containers() map[string]int {
	kinds := map[string]int{}
	for i := range b.containers {
		kinds[b.containers[i].kind.String()]++
	}
	return kinds
}

// All returns an iterator over the ids of the bitmap in ascending order.
func (b *Bitmap) All() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		b.Roaring().Iterate(yield)
	}
}

// IDs returns the ids of the bitmap in ascending order. The caller owns the returned slice.
func (b *Bitmap) IDs() []uint32 {
	ids := make([]uint32, 0, b.card)
	for i := range b.containers {
		ids = b.containers[i].appendTo(ids)
	}
	return ids
}

// The method Roaring returns the bitmap as a bitmap of the roaring library, so that the caller can use the set
// operations of that library. The caller must not change the returned roaring.Bitmap, because it shares the bytes of b.
func (b *Bitmap) Roaring() *roaring.Bitmap {
	r := roaring.New()
	if b.card == 0 { // the library would read past the end of the bytes of an empty set
		return r
	}
	if _, err := r.FromBuffer(b.raw); err != nil {
		// Read has checked every container, and a fuzz test proves that the library accepts every
		// checked bitmap.
		panic(fmt.Sprintf("checked bitmap refused by roaring: %v", err))
	}
	return r
}

// Sample returns n random ids of the bitmap in ascending order. If the bitmap has at most n ids, Sample returns all
// ids. Calls with equal seeds return equal samples.
func (b *Bitmap) Sample(n int, seed uint64) []uint32 {
	set := b.Roaring()
	if uint64(n) >= b.card {
		return set.ToArray()
	}
	r := rand.New(rand.NewPCG(seed, 0))
	ranks := map[uint32]bool{}
	for len(ranks) < n {
		ranks[uint32(r.Uint64N(b.card))] = true
	}
	list := make([]uint32, 0, n)
	for rank := range ranks {
		id, err := set.Select(rank)
		if err != nil {
			panic(fmt.Sprintf("select rank %d of %d: %v", rank, b.card, err)) // ranks are always below the cardinality
		}
		list = append(list, id)
	}
	slices.Sort(list)
	return list
}
