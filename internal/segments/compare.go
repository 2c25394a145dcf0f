package segments

import (
	"math/bits"
	"slices"
	"sync/atomic"
)

// Change is what becomes of one segment from one generation to another.
type Change struct {
	Segment string `json:"segment"`
	// State is one of the constants below.
	State   string `json:"state"`
	Before  uint64 `json:"before"`
	After   uint64 `json:"after"`
	Added   uint64 `json:"added"`   // in it now, not before
	Removed uint64 `json:"removed"` // in it before, not now
	// MovedFrom says how many of the added came from another segment, in order
	// of the precedence before; the rest were in no segment.
	MovedFrom []Moved `json:"moved_from,omitempty"`
	// Percent is added and removed users per 100 users before. 0 when there were none.
	Percent float64 `json:"percent"`
}

// Moved is users who come from another segment.
type Moved struct {
	From  string `json:"from"`
	Users uint64 `json:"users"`
}

// States of a Change.
const (
	Same     = "same"
	Changed  = "changed"
	Appears  = "appears"
	Vanishes = "vanishes" // the segment is not there any more
	Empties  = "empties"  // it is there, without users
	Fills    = "fills"    // it had no users
)

// Compare says what changes from before to c for every segment of either: those
// of c in their order, then those that vanish. It uses all cores.
func (c *Candidate) Compare(before *Generation) []Change {
	old := map[string]int{}
	for i, s := range before.Manifest.Segments {
		old[s.Name] = i
	}
	n := len(before.Bitmaps)
	shared := c.shared(before)
	var changes []Change
	for i, name := range c.Names {
		change := Change{Segment: name, State: Appears, After: c.Bitmaps[i].card, Added: c.Bitmaps[i].card}
		for j, s := range before.Manifest.Segments {
			both := shared[i*n+j]
			if s.Name == name {
				change.compareWith(before.Bitmaps[j].card, both)
			} else if both > 0 {
				change.MovedFrom = append(change.MovedFrom, Moved{From: s.Name, Users: both})
			}
		}
		changes = append(changes, change)
		delete(old, name)
	}
	for i, s := range before.Manifest.Segments {
		if _, vanishes := old[s.Name]; vanishes {
			card := before.Bitmaps[i].card
			changes = append(changes, Change{Segment: s.Name, State: Vanishes, Before: card, Removed: card, Percent: percent(card, card)})
		}
	}
	return changes
}

// manyPairs is from how many pairs of segments on it is faster to look at every
// user once than at every pair.
const manyPairs = 64

// shared counts the users in new segment i and old segment j, at i*n+j for n old ones.
func (c *Candidate) shared(before *Generation) []uint64 {
	n := len(before.Bitmaps)
	shared := make([]uint64, len(c.Bitmaps)*n)
	if len(shared) > manyPairs && disjoint(before.Bitmaps) {
		inParallel(min(chunks(c.Bitmaps), chunks(before.Bitmaps)), func(key int) { c.shareChunk(before, key, shared) })
	} else {
		inParallel(len(shared), func(k int) { shared[k], _ = common(c.Bitmaps[k/n], before.Bitmaps[k%n]) })
	}
	return shared
}

// shareChunk adds the counts of one chunk: a user has one old segment at most.
func (c *Candidate) shareChunk(before *Generation, key int, shared []uint64) {
	old := gather(before.Bitmaps, key)
	if len(old) == 0 {
		return
	}
	var taken words
	var codes [chunkIDs]uint8
	for _, f := range old {
		takeWords(f.data, f.code, &taken, &codes)
	}
	for _, f := range gather(c.Bitmaps, key) {
		var w words
		var counts [MaxSegments + 1]uint64 // by old code; 0: of none
		f.data.addTo(&w)
		for i, x := range w {
			for ; x != 0; x &= x - 1 {
				counts[codes[i<<6+bits.TrailingZeros64(x)]]++
			}
		}
		row := shared[(int(f.code)-1)*len(before.Bitmaps):]
		for code, count := range counts {
			if code > 0 && count > 0 {
				atomic.AddUint64(&row[code-1], count)
			}
		}
	}
}

// compareWith completes the change of a segment that was there before.
func (c *Change) compareWith(before, both uint64) {
	c.Before, c.Added, c.Removed = before, c.After-both, before-both
	c.Percent = percent(c.Added+c.Removed, before)
	switch {
	case c.After == 0 && before > 0:
		c.State = Empties
	case before == 0 && c.After > 0:
		c.State = Fills
	case c.Added+c.Removed == 0:
		c.State = Same
	default:
		c.State = Changed
	}
}

func percent(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

// Drift says what becomes of the segments that both have, in the order of c: a
// comparison with a generation that is not the live one, where what appears and
// vanishes was judged long ago. It uses all cores.
func (c *Candidate) Drift(before *Generation) []Change {
	changes := make([]Change, len(c.Names))
	inParallel(len(c.Names), func(i int) {
		name := c.Names[i]
		j := slices.IndexFunc(before.Manifest.Segments, func(s Segment) bool { return s.Name == name })
		if j < 0 {
			return
		}
		both, _ := common(c.Bitmaps[i], before.Bitmaps[j])
		changes[i] = Change{Segment: name, After: c.Bitmaps[i].card}
		changes[i].compareWith(before.Bitmaps[j].card, both)
	})
	return slices.DeleteFunc(changes, func(c Change) bool { return c.Segment == "" })
}

// NoSegment is who falls to no segment, and so to the default limits, and who
// comes from there.
type NoSegment struct {
	Before uint64 `json:"before"` // users in any segment before
	After  uint64 `json:"after"`  // users in any segment now
	Fall   uint64 `json:"fall"`   // in a segment before, in none now
	Rise   uint64 `json:"rise"`   // in none before, in a segment now
	// Percent is the users that fall per 100 users before. 0 when there were none.
	Percent float64 `json:"percent"`
}

// NoSegment compares all users of c with all users before, chunk by chunk: the
// cost is that of reading all bitmaps once. It uses all cores.
func (c *Candidate) NoSegment(before *Generation) NoSegment {
	var counts [3]atomic.Uint64 // before, after, in both
	inParallel(max(chunks(c.Bitmaps), chunks(before.Bitmaps)), func(key int) {
		var old, now words
		for _, f := range gather(before.Bitmaps, key) {
			f.data.addTo(&old)
		}
		for _, f := range gather(c.Bitmaps, key) {
			f.data.addTo(&now)
		}
		both := 0
		for i := range old {
			both += bits.OnesCount64(old[i] & now[i])
		}
		counts[0].Add(uint64(old.count()))
		counts[1].Add(uint64(now.count()))
		counts[2].Add(uint64(both))
	})
	n := NoSegment{Before: counts[0].Load(), After: counts[1].Load()}
	n.Fall, n.Rise = n.Before-counts[2].Load(), n.After-counts[2].Load()
	n.Percent = percent(n.Fall, n.Before)
	return n
}

// chunks is one more than the highest key of the bitmaps' containers.
func chunks(bitmaps []*Bitmap) (n int) {
	for _, b := range bitmaps {
		if len(b.containers) > 0 {
			n = max(n, int(b.containers[len(b.containers)-1].key)+1)
		}
	}
	return n
}
