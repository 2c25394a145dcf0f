package gate

import (
	"sync"
	"time"
)

// Budget is what all calls together may hold of something: users, bytes. It is
// shared fairly between the clients that hold or want a part of it. While
// there is room anybody may have it, so that a client alone can use all of it.
// Once it is short:
//
//   - who holds its share, the budget divided by such clients, is refused;
//   - who holds less waits, first come, first served, for no longer than
//     patience, and calls of the client that holds most are cut off, where
//     they only wait for that client, until there is room.
//
// A call that waits never waits for one that waits: the parts of clients below
// their shares fit together.
type Budget struct {
	bound    int64
	patience time.Duration

	mu      sync.Mutex
	held    int64
	claims  map[string]int64   // by client: what its calls hold, and what they wait for
	idlers  map[*Hold]struct{} // holds that can be cut off
	waiting []*waiter
	refused int64 // calls, since the start
	cuts    int64 // calls cut off, since the start
}

// Hold is a call's part of a budget. Its methods are for one goroutine at a
// time.
type Hold struct {
	of     *Budget
	client string
	n      int64
	cut    func() // ends a wait for the client; nil: the call is not waiting for it
	lost   bool   // it was cut off
}

type waiter struct {
	h        *Hold
	n        int64
	admitted chan struct{}
}

func newBudget(bound int64, patience time.Duration) *Budget {
	return &Budget{bound: bound, patience: patience, claims: map[string]int64{}, idlers: map[*Hold]struct{}{}}
}

// Open is a part of nothing yet.
func (b *Budget) Open(client string) *Hold { return &Hold{of: b, client: client} }

// Usage is what is held now, and how many calls have been refused and cut off
// since the start.
func (b *Budget) Usage() (held, refused, cuts int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held, b.refused, b.cuts
}

// InUse is what is held now.
func (b *Budget) InUse() int64 {
	held, _, _ := b.Usage()
	return held
}

// CountRefusal reports whether n more would be refused to the client now, and
// counts the refusal if so: the caller refuses the call.
func (b *Budget) CountRefusal(client string, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.free(n) || b.within(client, n) {
		return false
	}
	b.refused++
	return true
}

// free reports whether there is room for n, and nobody waits for it. What alone
// is beyond the bound may enter when nothing else is held.
func (b *Budget) free(n int64) bool {
	return len(b.waiting) == 0 && b.fits(n)
}

func (b *Budget) fits(n int64) bool { return b.held == 0 || b.held+n <= b.bound }

// within reports whether a client stays within its share with n more. Its
// first call always does.
func (b *Budget) within(client string, n int64) bool {
	claimed := b.claims[client]
	if claimed == 0 {
		return true
	}
	return claimed+n <= b.bound/int64(len(b.claims))
}

// Grow makes the part larger by n, or reports false: then it stays as it is.
// It may wait. While it does, and from then on, it cannot be cut off by others
// unless AllowCut says so.
func (h *Hold) Grow(n int64) bool {
	b := h.of
	b.mu.Lock()
	if h.lost || !b.free(n) && !b.within(h.client, n) {
		b.refused++
		b.mu.Unlock()
		return false
	}
	if b.free(n) {
		b.claims[h.client] += n
		b.held += n
		h.n += n
		b.mu.Unlock()
		return true
	}
	w := &waiter{h, n, make(chan struct{})}
	b.claims[h.client] += n
	b.waiting = append(b.waiting, w)
	b.makeRoom()
	b.mu.Unlock()
	return b.wait(w)
}

func (b *Budget) wait(w *waiter) bool {
	timer := time.NewTimer(b.patience)
	defer timer.Stop()
	select {
	case <-w.admitted:
		return true
	case <-timer.C:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, other := range b.waiting {
		if other == w {
			b.waiting = append(b.waiting[:i], b.waiting[i+1:]...)
			b.unclaim(w.h.client, w.n)
			b.refused++
			b.admit()
			return false
		}
	}
	return true // admitted in the last moment
}

// makeRoom cuts off holds for those who wait.
func (b *Budget) makeRoom() {
	missing := b.held - b.bound
	for _, w := range b.waiting {
		missing += w.n
	}
	for h := range b.idlers {
		if h.lost {
			missing -= h.n // it is on its way out
		}
	}
	for missing > 0 {
		largest := b.largestToCut()
		if largest == nil {
			return
		}
		largest.lost = true
		b.cuts++
		missing -= largest.n
		largest.cut()
	}
}

// largestToCut is the largest hold that can be cut off of the client that has most,
// which has more than its share.
func (b *Budget) largestToCut() (largest *Hold) {
	share := b.bound / int64(len(b.claims))
	for h := range b.idlers {
		claimed := b.claims[h.client]
		if h.lost || claimed <= share {
			continue
		}
		if largest == nil || claimed > b.claims[largest.client] || h.client == largest.client && h.n > largest.n {
			largest = h
		}
	}
	return largest
}

// admit lets in who waits, in order, as far as there is room.
func (b *Budget) admit() {
	for len(b.waiting) > 0 && b.fits(b.waiting[0].n) {
		w := b.waiting[0]
		b.waiting = b.waiting[1:]
		b.held += w.n
		w.h.n += w.n
		close(w.admitted)
	}
}

func (b *Budget) unclaim(client string, n int64) {
	if b.claims[client] -= n; b.claims[client] <= 0 {
		delete(b.claims, client)
	}
}

// Settle makes the part n, for what is known already: a larger one is not
// refused.
func (h *Hold) Settle(n int64) {
	b := h.of
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held += n - h.n
	b.claims[h.client] += n - h.n
	h.n = n
	b.unclaim(h.client, 0)
	b.admit()
}

// Size is how much the part is now.
func (h *Hold) Size() int64 { return h.n }

// Another is a further part, of nothing yet, for the same client.
func (h *Hold) Another() *Hold { return h.of.Open(h.client) }

// AllowCut says how the call is cut off while it waits for its client; nil: it
// no longer waits. cut must not block; it is called at most once, and not
// after AllowCut(nil) or Close. False: it has been cut off.
func (h *Hold) AllowCut(cut func()) bool {
	b := h.of
	b.mu.Lock()
	defer b.mu.Unlock()
	h.cut = cut
	if cut == nil {
		delete(b.idlers, h)
	} else if !h.lost {
		b.idlers[h] = struct{}{}
		if len(b.waiting) > 0 {
			b.makeRoom()
		}
	}
	return !h.lost
}

// WasCut reports whether the call has been cut off.
func (h *Hold) WasCut() bool {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	return h.lost
}

// Close gives the part back. A second time does nothing.
func (h *Hold) Close() {
	if h.n != 0 || h.cut != nil {
		h.AllowCut(nil)
		h.Settle(0)
	}
}
