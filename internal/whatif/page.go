package whatif

import (
	"math/bits"
	"slices"
	"unsafe"

	"capper/internal/bitmap"
	"capper/internal/capping"
)

// A page holds the histories of the users in one block of 65,536 ids: the recorded sends, and the sends under the
// alternative policy.
//
// Each user with sends has a memory block of 4, 8, 16 … words. A user's memory block has a header and then the numbers
// of the recorded calls that sent a message to the user, oldest first. If the two histories of a user differ
// (diverged), the block also holds the numbers of the calls in the history under the alternative policy. A slot of a
// page holds the location and the length of the memory block of a user.
type page struct {
	// A slot's value is 32 × the location of the user's memory block, plus the binary logarithm of the block's number
	// of words. The value 0 means no history. A page with few users has its slots in the field groups, and a page with
	// many users in the field flat.
	groups   *[pageIDs / slotIDs]*[slotIDs]uint32
	flat     []uint32
	filled   int                  // number of groups that exist
	words    [][]uint32           // blocks, in parts of partWords
	free     [maxClass + 1]uint32 // by log2 of the words: first free block, whose first word points to the next
	pending  []sent               // calls that are not in the users' blocks yet, oldest first
	diverged int                  // users whose two histories differ

	asked   *bitmap.Words         // users of the page who were in counted calls
	changed *[pageIDs / 64]uint64 // users in the field asked with a different decision
	deltas  *[pageIDs]int16       // by id: difference in counted sends under the alternative policy
	bytes   func(int)             // receives the size of allocated memory
}

// The type "sent" describes a call that sent a message to users of the page (65,536 users).
type sent struct {
	users *bitmap.Bitmap
	at    int // index of the page's block in users
	call  uint32
}

const (
	pageIDs    = bitmap.BlockIDs
	slotIDs    = 64
	manyGroups = 100 // number of groups from which a page is flat: hardly larger, and faster to read

	minClass  = 2  // blocks of 4 words
	maxClass  = 12 // longest block: two full histories
	partWords = 1 << maxClass
)

// The header of a user's memory block holds the number of recorded calls (16 bits) and the number of calls under the
// alternative policy (15 bits). The last bit of the header says whether the user's two histories differ.
const (
	countBits   = 16
	longest     = partWords/2 - 1 // entries of a history: the newest, twice as many as a limit can count
	divergedBit = 1 << 31
)

func recordedIn(header uint32) int { return int(header & (1<<countBits - 1)) }

func otherIn(header uint32) int { return int(header &^ divergedBit >> countBits) }

func differ(header uint32) bool { return header&divergedBit != 0 }

// The method slot returns a user's slot (location and length of the memory block), and creates the slot if necessary.
func (p *page) slot(low uint16) *uint32 {
	if p.flat != nil {
		return &p.flat[low]
	}
	if p.groups == nil {
		p.groups = new([pageIDs / slotIDs]*[slotIDs]uint32)
		p.bytes(int(unsafe.Sizeof(*p.groups)))
	}
	if p.groups[low/slotIDs] == nil {
		if p.filled++; p.filled > manyGroups {
			p.flatten()
			return &p.flat[low]
		}
		p.groups[low/slotIDs] = new([slotIDs]uint32)
		p.bytes(4 * slotIDs)
	}
	return &p.groups[low/slotIDs][low%slotIDs]
}

// The method flatten moves the slots of a page from groups to one slice with the slots of all ids of the page. A single
// slice of slots is faster to read than groups of slots.
func (p *page) flatten() {
	p.flat = make([]uint32, pageIDs)
	for i, group := range p.groups {
		if group != nil {
			copy(p.flat[i*slotIDs:], group[:])
		}
	}
	p.bytes(4*pageIDs - int(unsafe.Sizeof(*p.groups)) - 4*slotIDs*manyGroups)
	p.groups = nil
}

// The method place returns the content of a user's slot (location and length of the memory block), or 0 if the user has
// no sends.
func (p *page) place(low uint16) uint32 {
	switch {
	case p == nil:
		return 0
	case p.flat != nil:
		return p.flat[low]
	case p.groups == nil || p.groups[low/slotIDs] == nil:
		return 0
	}
	return p.groups[low/slotIDs][low%slotIDs]
}

// The method "at" returns the memory block at the given location in the page (the histories of 65,536 users).
func (p *page) at(place uint32) []uint32 {
	from := place >> 5 % partWords
	return p.words[place>>5/partWords][from : from+1<<(place&31)]
}

// The method header returns the first word (header) of the memory block at the given location.
func (p *page) header(place uint32) *uint32 {
	return &p.words[place>>5/partWords][place>>5%partWords]
}

// The method "histories" returns the numbers of the calls that sent a message to the user: the recorded calls, and the
// calls under the alternative policy. The slices that the method "histories" returns share the memory of the page.
func (p *page) histories(place uint32) (recorded, other []uint32) {
	if place == 0 {
		return nil, nil
	}
	b := p.at(place)
	n := recordedIn(b[0])
	recorded = b[1 : 1+n]
	if !differ(b[0]) {
		return recorded, recorded
	}
	return recorded, b[1+n : 1+n+otherIn(b[0])]
}

// The method append adds a call to both histories of a user. The call sent a message to the user. The result "ok" of
// the method append is false if the user's memory block has no space left.
func (p *page) append(low uint16, call uint32) (ok bool) {
	place := p.slot(low)
	if *place == 0 {
		*place = p.alloc(minClass)
		*p.header(*place) = 0
	}
	b := p.at(*place)
	n := recordedIn(b[0])
	if differ(b[0]) || n+1 >= len(b) || n >= capping.LogBound {
		return false
	}
	b[n+1] = call
	b[0]++
	return true
}

// The method set replaces both histories of a user. The arguments "recorded" and "other" must not share memory with the
// page.
func (p *page) set(low uint16, recorded, other []uint32) {
	slot := p.slot(low)
	if *slot != 0 && differ(*p.header(*slot)) {
		p.diverged--
	}
	same := slices.Equal(recorded, other)
	words := 1 + len(recorded)
	if !same {
		words += len(other)
	}
	p.resize(slot, words)
	if *slot == 0 {
		return
	}
	b := p.at(*slot)
	b[0] = uint32(len(recorded))
	copy(b[1:], recorded)
	if !same {
		b[0] |= uint32(len(other))<<16 | divergedBit
		copy(b[1+len(recorded):], other)
		p.diverged++
	}
}

// The method resize replaces the memory block of a user's slot by an empty block with space for the given number of
// words. If the argument "words" is 1, the user has no sends, and the slot gets no memory block.
func (p *page) resize(slot *uint32, words int) {
	class := uint32(max(minClass, bits.Len(uint(words-1))))
	if words == 1 {
		class = 0
	}
	if *slot != 0 {
		if *slot&31 == class {
			return
		}
		old := *slot & 31
		*p.header(*slot), p.free[old] = p.free[old], *slot
		*slot = 0
	}
	if class > 0 {
		*slot = p.alloc(class)
	}
}

// The method alloc returns the location of a new memory block of 1<<class words for a user. The content of the new
// block is undefined.
func (p *page) alloc(class uint32) (place uint32) {
	if place = p.free[class]; place != 0 {
		p.free[class] = *p.header(place)
		return place
	}
	last := len(p.words) - 1
	if last < 0 || len(p.words[last])+1<<class > partWords {
		part := make([]uint32, 0, partWords)
		if last < 0 { // a page with few users must not take a whole part
			part = make([]uint32, 1, slotIDs) // location 0 means none
		}
		p.words = append(p.words, part)
		p.bytes(4 * cap(part))
		last++
	}
	part := p.words[last]
	at := last*partWords + len(part)
	p.words[last] = append(part, make([]uint32, 1<<class)...)
	p.bytes(4 * (cap(p.words[last]) - cap(part)))
	return uint32(at)<<5 | class
}

// The method ask notes that users of the page (65,536 users) were in a call that the result counts: the users in the
// bitmap's block with the given key.
func (p *page) ask(users *bitmap.Bitmap, key int) {
	if p.asked == nil {
		p.asked = new(bitmap.Words)
		p.bytes(pageIDs / 8)
	}
	users.Add(key, p.asked)
}

// The method change notes that the alternative policy decided differently about a user. The method change adds the
// argument "more" to the difference in the user's number of sends.
func (p *page) change(low uint16, more int) {
	if p.changed == nil {
		p.changed, p.deltas = new([pageIDs / 64]uint64), new([pageIDs]int16)
		p.bytes(int(unsafe.Sizeof(*p.changed) + unsafe.Sizeof(*p.deltas)))
	}
	p.changed[low/64] |= 1 << (low % 64)
	p.deltas[low] = int16(max(-1<<15, min(1<<15-1, int(p.deltas[low])+more)))
}
