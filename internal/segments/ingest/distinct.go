package ingest

import (
	"math"
	"math/bits"
	"slices"
)

// exactRows is up to how many rows the distinct ids of a file are counted; beyond, they are estimated.
const exactRows = 1 << 16

// distinct counts how many different ids there are: exactly in a short file, else within some per cent, for
// a count of its own would take as much time and memory as the set that is built.
type distinct struct {
	few    []uint32 // all rows, while there are at most exactRows
	many   bool     // there were more
	sketch sketch
}

// add takes a block's ids and their sketch.
func (d *distinct) add(ids []uint32, s *sketch) {
	d.sketch.merge(s)
	if d.many = d.many || len(d.few)+len(ids) > exactRows; d.many {
		d.few = nil
		return
	}
	d.few = append(d.few, ids...)
}

// count is the number of distinct ids among so many rows; exact tells whether it is one.
func (d *distinct) count(rows int64) (n int64, exact bool) {
	if d.many {
		return min(d.sketch.estimate(), rows), false
	}
	slices.Sort(d.few)
	return int64(len(slices.Compact(d.few))), true
}

// sketch estimates the number of distinct ids (HyperLogLog, Flajolet et al. 2007):
// the ids are spread over registers, each of which keeps the longest run of zeros
// at the start of a hash. The standard error is 1.04 divided by the square root of the number of registers: 0.8 %.
type sketch [1 << sketchBits]uint8

const sketchBits = 14

func (s *sketch) add(ids []uint32) {
	for _, id := range ids {
		h := (uint64(id) + 1) * 0x9e3779b97f4a7c15
		h = (h ^ h>>32) * 0xd6e8feb86659fd93
		h ^= h >> 32
		zeros := uint8(bits.LeadingZeros64(h<<sketchBits|1<<(sketchBits-1))) + 1
		if register := &s[h>>(64-sketchBits)]; *register < zeros {
			*register = zeros
		}
	}
}

func (s *sketch) merge(other *sketch) {
	for i, zeros := range other {
		s[i] = max(s[i], zeros)
	}
}

// estimate is the paper's, with linear counting while registers are empty.
func (s *sketch) estimate() int64 {
	const m = float64(len(s))
	sum, empty := 0.0, 0.0
	for _, zeros := range s {
		sum += math.Ldexp(1, -int(zeros))
		if zeros == 0 {
			empty++
		}
	}
	n := 0.7213 / (1 + 1.079/m) * m * m / sum
	if n <= 2.5*m && empty > 0 {
		n = m * math.Log(m/empty)
	}
	return int64(math.Round(n))
}
