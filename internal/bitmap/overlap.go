package bitmap

import (
	"math/bits"
	"sync/atomic"

	"capper/internal/parallel"
)

// The function Disjoint reports whether every id is in at most one of the bitmaps. The function Disjoint reads each
// bitmap once, because a comparison of every pair of bitmaps would take longer. The function Disjoint uses all CPU
// cores.
func Disjoint(bitmaps []*Bitmap) bool {
	var sum uint64
	for _, b := range bitmaps {
		sum += b.card
	}
	var union atomic.Uint64
	parallel.OnAllCores(keys(bitmaps), func(key int) {
		of := gather(bitmaps, key)
		if len(of) == 0 {
			return
		}
		var w words
		addAll(&w, of)
		union.Add(uint64(w.count()))
	})
	return union.Load() == sum
}

// addAll adds all ids of the containers to w.
func addAll(w *words, containers []coded) {
	for _, f := range containers {
		f.data.addTo(w)
	}
}

// The function "keys" returns the number of blocks (65,536 neighbouring ids each) up to the highest id in any of the
// bitmaps.
func keys(bitmaps []*Bitmap) (n int) {
	for _, b := range bitmaps {
		if len(b.containers) > 0 {
			n = max(n, int(b.containers[len(b.containers)-1].key)+1)
		}
	}
	return n
}

// The function Common counts the ids that are in both bitmaps. The function Common also returns the lowest common ids;
// the argument "samples" is the maximum number of these ids.
func Common(a, b *Bitmap, samples int) (ids uint64, lowest []uint32) {
	for i, j := 0, 0; i < len(a.containers) && j < len(b.containers); {
		x, y := &a.containers[i], &b.containers[j]
		switch {
		case x.key < y.key:
			i++
		case x.key > y.key:
			j++
		default:
			var w, v words
			x.addTo(&w)
			y.addTo(&v)
			for k := range w {
				w[k] &= v[k]
				ids += uint64(bits.OnesCount64(w[k]))
			}
			for at := w.next(0, 0); at < containerIDs && len(lowest) < samples; at = w.next(at+1, 0) {
				lowest = append(lowest, uint32(x.key)<<16|uint32(at))
			}
			i++
			j++
		}
	}
	return ids, lowest
}

// The function Unions counts the ids in the union of the bitmaps a, in the union of the bitmaps b, and in both unions.
// The function Unions reads each bitmap once and uses all CPU cores.
func Unions(a, b []*Bitmap) (inA, inB, inBoth uint64) {
	var counts [3]atomic.Uint64
	parallel.OnAllCores(max(keys(a), keys(b)), func(key int) {
		ofA, ofB := gather(a, key), gather(b, key)
		if len(ofA)+len(ofB) == 0 {
			return
		}
		var v, w words
		addAll(&v, ofA)
		addAll(&w, ofB)
		both := 0
		for i := range v {
			both += bits.OnesCount64(v[i] & w[i])
		}
		counts[0].Add(uint64(v.count()))
		counts[1].Add(uint64(w.count()))
		counts[2].Add(uint64(both))
	})
	return counts[0].Load(), counts[1].Load(), counts[2].Load()
}

// If there are more than manyPairs pairs of bitmaps, Shared reads every id once if it can, because a comparison of
// every pair would be slower.
const manyPairs = 64

// maxCodes is the number of bitmaps that a one-byte code can distinguish. An id that is in no bitmap has the code 0.
const maxCodes = 255

// The function Shared counts, for every pair of bitmaps a[i] and b[j], the ids that are in both. The element i*len(b)+j
// of the result is the count for a[i] and b[j]. The slice b may have at most 255 bitmaps. The function Shared uses all
// CPU cores.
func Shared(a, b []*Bitmap) []uint64 {
	shared := make([]uint64, len(a)*len(b))
	if len(shared) > manyPairs && Disjoint(b) {
		parallel.OnAllCores(min(keys(a), keys(b)), func(key int) { addShared(shared, a, b, key) })
	} else {
		parallel.OnAllCores(len(shared), func(k int) { shared[k], _ = Common(a[k/len(b)], b[k%len(b)], 0) })
	}
	return shared
}

// addShared counts the common ids of every pair of bitmaps a[i] and b[j] whose upper 16 bits equal key, and adds the
// counts to the slice "shared". Each of these ids must be in at most one bitmap of b.
func addShared(shared []uint64, a, b []*Bitmap, key int) {
	in := gather(b, key)
	if len(in) == 0 {
		return
	}
	var taken words
	var codes [containerIDs]uint8
	for _, f := range in {
		takeWords(f.data, f.code, &taken, &codes)
	}
	for _, f := range gather(a, key) {
		var w words
		var counts [maxCodes + 1]uint64 // index: code in b; index 0 counts ids that are in no bitmap of b
		f.data.addTo(&w)
		for i, x := range w {
			for ; x != 0; x &= x - 1 {
				counts[codes[i<<6+bits.TrailingZeros64(x)]]++
			}
		}
		row := shared[(int(f.code)-1)*len(b):]
		for code, count := range counts {
			if code > 0 && count > 0 {
				atomic.AddUint64(&row[code-1], count)
			}
		}
	}
}

// LowestWithout returns the n lowest ids of the bitmap b that are not in the bitmap "other". If the argument "other" is
// nil, LowestWithout returns the n lowest ids of the bitmap b.
func (b *Bitmap) LowestWithout(other *Bitmap, n int) (lowest []uint32) {
	for i := range b.containers {
		mine := &b.containers[i]
		var w, v words
		mine.addTo(&w)
		if other != nil {
			if theirs := other.container(mine.key); theirs != nil {
				theirs.addTo(&v)
			}
		}
		for k := range w {
			w[k] &^= v[k]
		}
		for at := w.next(0, 0); at < containerIDs; at = w.next(at+1, 0) {
			if len(lowest) == n {
				return lowest
			}
			lowest = append(lowest, uint32(mine.key)<<16|uint32(at))
		}
	}
	return lowest
}

// The function Outside counts, for each bitmap of the slice a, the ids that are in no bitmap of the slice b. The
// function Outside reads each bitmap once. The argument "goroutines" is the maximum number of goroutines.
func Outside(a, b []*Bitmap, goroutines int) []uint64 {
	outside := make([]atomic.Uint64, len(a))
	parallel.AtMost(goroutines, keys(a), func(key int) {
		var others Words
		addAll(&others.bits, gather(b, key))
		for i := range a {
			if c := a[i].container(uint16(key)); c != nil {
				outside[i].Add(uint64(c.card - a[i].CountIn(key, &others)))
			}
		}
	})
	counts := make([]uint64, len(a))
	for i := range counts {
		counts[i] = outside[i].Load()
	}
	return counts
}
