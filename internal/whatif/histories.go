package whatif

import (
	"slices"
	"unsafe"

	"capper/internal/audit"
	"capper/internal/audit/numbering"
	"capper/internal/bitmap"
	"capper/internal/capping"
)

// The type "histories" holds two histories of every user: the recorded sends, and the sends that the alternative policy
// would have allowed.
type histories struct {
	pages []*page     // by the upper half of the ids; nil: no user of the page got a send
	calls capping.Log // calls that sent something, by number: time, channel, message
	// The field horizon is an instant. No policy counts sends at or before this instant.
	horizon capping.Instant
	bytes   int64
	numbers *numbering.Numbers // nil: the ids are dense

	first, second []uint32 // the two histories of the user who is being changed
	ids           []uint32 // ids of the block that is being read
	released      pair[[]capping.Channel]
}

func newHistories() *histories {
	return &histories{pages: make([]*page, bitmap.MaxBlocks), bytes: bitmap.MaxBlocks * int64(unsafe.Sizeof(&page{}))}
}

// The method "numbered" returns a copy of the record with small numbers in place of the users. The number of a user is
// the dense id, or a small number for the user's id image (64-bit hash).
func (h *histories) numbered(r *audit.Record) (*audit.Record, error) {
	if !slices.ContainsFunc(r.Groups, func(g audit.Group) bool { return g.Images != nil }) {
		return r, nil
	}
	if h.numbers == nil {
		h.numbers = numbering.New()
	}
	return h.numbers.Record(r)
}

// The method call stores the time, channel and message of a call that sent a message. The method call returns the
// call's number in the users' histories.
func (h *histories) call(e capping.Entry) uint32 {
	before := cap(h.calls)
	h.calls = capping.Log(nil).Record(h.calls, e, -1)
	h.bytes += int64(cap(h.calls) - before)
	return uint32(h.calls.Len() - 1)
}

// The method entry returns the time, channel and message of the call with the given number, as an entry of a user's
// log.
func (h *histories) entry(call uint32) []byte {
	return h.calls[capping.EntrySize*int(call) : capping.EntrySize*int(call)+capping.EntrySize]
}

// The method page returns the page (the histories of 65,536 neighbouring users) with the given key, and creates the
// page if necessary.
func (h *histories) page(key int) *page {
	if h.pages[key] == nil {
		h.pages[key] = &page{bytes: func(n int) { h.bytes += int64(n) }}
		h.bytes += int64(unsafe.Sizeof(page{}))
	}
	return h.pages[key]
}

// The method "later" notes that a call sent a message, under both policies, to the users in one block of 65,536 ids.
// The block has the index i in the bitmap. The page keeps the users of the block as one bitmap until the replay needs
// the histories of single users.
func (h *histories) later(p *page, users *bitmap.Bitmap, i int, call uint32) {
	for len(p.pending) > 0 && h.calls.At(int(p.pending[0].call)) <= h.horizon {
		p.pending = p.pending[1:]
	}
	p.pending = append(p.pending, sent{users, i, call})
}

// pendingBytes returns the memory, in bytes, of the bitmaps whose sends are not yet in the histories of single users.
func (h *histories) pendingBytes() (bytes int64) {
	counted := map[*bitmap.Bitmap]bool{}
	for _, p := range h.pages {
		if p == nil {
			continue
		}
		bytes += int64(cap(p.pending)) * int64(unsafe.Sizeof(sent{}))
		for _, s := range p.pending {
			if !counted[s.users] {
				counted[s.users] = true
				bytes += s.users.SizeBytes()
			}
		}
	}
	return bytes
}

// The method settle moves the pending sends of a page (65,536 neighbouring users) from bitmaps into each user's
// histories. The method settle drops sends that no policy counts any more.
func (h *histories) settle(key int) {
	p := h.pages[key]
	if p == nil || len(p.pending) == 0 {
		return
	}
	for _, s := range p.pending {
		if h.calls.At(int(s.call)) <= h.horizon {
			continue
		}
		h.ids = s.users.AppendAt(h.ids[:0], s.at)
		for _, user := range h.ids {
			h.add(p, uint16(user), s.call, true, true)
		}
	}
	p.pending = nil
}

// The method add adds a call to the recorded history of a user, to the history under the alternative policy, or to
// both.
func (h *histories) add(p *page, low uint16, call uint32, recorded, other bool) {
	if recorded && other && p.append(low, call) {
		return
	}
	h.read(p, low)
	if recorded {
		h.first = h.bounded(append(h.first, call))
	}
	if other {
		h.second = h.bounded(append(h.second, call))
	}
	p.set(low, h.first, h.second)
}

// The method read reads the two histories of a user, without the sends that no policy counts any more.
func (h *histories) read(p *page, low uint16) {
	recorded, other := p.histories(p.place(low))
	h.first = append(h.first[:0], h.live(recorded)...)
	h.second = append(h.second[:0], h.live(other)...)
}

func (h *histories) live(calls []uint32) []uint32 {
	for len(calls) > 0 && h.calls.At(int(calls[0])) <= h.horizon {
		calls = calls[1:]
	}
	return calls
}

// The method "bounded" returns those sends of a history that a store would keep: a store bounds the number of sends in
// a user's log. If the channel of the newest call has more than capping.LogBound calls, the method "bounded" removes
// the oldest call of this channel. The result of the method "bounded" has at most as many calls as the constant
// "longest" says.
func (h *histories) bounded(calls []uint32) []uint32 {
	if len(calls) <= capping.LogBound {
		return calls
	}
	channel := h.calls.Channel(int(calls[len(calls)-1]))
	oldest, n := -1, 0
	for i, call := range calls {
		if h.calls.Channel(int(call)) == channel {
			if n++; oldest < 0 {
				oldest = i
			}
		}
	}
	if n > capping.LogBound {
		return slices.Delete(calls, oldest, oldest+1)
	}
	return calls[max(0, len(calls)-longest):]
}

// The method release removes the sends of a message on a channel from both histories of a user. Channel 0 means all
// channels. The result "recorded" of the method release lists the channels of the sends that were removed from the
// recorded history. The result "other" lists the channels of the sends later than "after" that were removed from the
// history under the alternative policy. The results of the method release are valid until its next call.
func (h *histories) release(p *page, low uint16, channel capping.Channel, token capping.Token,
	after capping.Instant) (recorded, other []capping.Channel) {
	h.read(p, low)
	of := func(call uint32) bool {
		e := h.calls.Entry(int(call))
		return e.Token == token && (channel == 0 || e.Channel == channel)
	}
	h.released.before = h.channelsOf(h.released.before[:0], h.first, of)
	h.released.after = h.channelsOf(h.released.after[:0], h.second, func(call uint32) bool {
		return of(call) &&
			h.calls.At(int(call)) > after
	})
	if len(h.released.before) > 0 || slices.ContainsFunc(h.second, of) {
		h.first, h.second = slices.DeleteFunc(h.first, of), slices.DeleteFunc(h.second, of)
		p.set(low, h.first, h.second)
	}
	return h.released.before, h.released.after
}

// channelsOf returns the distinct channels of the calls that the function "meant" selects.
func (h *histories) channelsOf(channels []capping.Channel, calls []uint32, meant func(uint32) bool) []capping.Channel {
	for _, call := range calls {
		if on := h.calls.Channel(int(call)); meant(call) && !slices.Contains(channels, on) {
			channels = append(channels, on)
		}
	}
	return channels
}

// The method "sent" reports whether the recorded sends of the user contain the message on the channel.
func (h *histories) sent(p *page, low uint16, channel capping.Channel, token capping.Token) bool {
	recorded, _ := p.histories(p.place(low))
	for _, call := range slices.Backward(recorded) {
		e := h.entry(call)
		if capping.Token(e[6:]) == token && capping.Channel(e[5]) == channel {
			return true
		}
	}
	return false
}

// divergedAt reports whether the two histories of a user (recorded, and under the alternative policy) differ.
func (p *page) divergedAt(low uint16) bool {
	if p == nil || p.diverged == 0 {
		return false
	}
	place := p.place(low)
	return place != 0 && differ(*p.header(place))
}
