package gate

import (
	"sync"
	"time"
)

// Budget limits the amount of a resource, such as users or bytes, that all calls together may hold. Clients that hold
// or want a part share the budget fairly. While part of the budget is free, any client may take it, so one client
// alone can use all of it. An exhausted budget treats a client by its share, which is the budget divided by the
// number of clients:
//
//   - The budget refuses a client that already holds its share.
//   - A client that holds less waits in a first-in, first-out queue, at most for the time in patience.
//
// Meanwhile the budget cuts off calls of the client that holds most, if these calls only wait for that client. A
// waiting call never depends on another waiting call, because the parts of clients below their shares fit together.
type Budget struct {
	bound    int64
	patience time.Duration

	mu      sync.Mutex
	held    int64
	claims  map[string]int64   // by client: the amount that its calls hold and wait for
	idlers  map[*Hold]struct{} // holds that can be cut off
	waiting []*waiter
	refused int64 // calls, since the start
	cuts    int64 // calls cut off, since the start
}

// Hold is the part of a budget that one call holds. Only one goroutine at a time may call its methods.
type Hold struct {
	of     *Budget
	client string
	n      int64
	cut    func() // ends a wait for the client; nil: the call is not waiting for its client
	lost   bool   // the call was cut off
}

type waiter struct {
	h        *Hold
	n        int64
	admitted chan struct{}
}

func newBudget(bound int64, patience time.Duration) *Budget {
	return &Budget{bound: bound, patience: patience, claims: map[string]int64{}, idlers: map[*Hold]struct{}{}}
}

// Open returns an empty Hold for a client.
func (b *Budget) Open(client string) *Hold { return &Hold{of: b, client: client} }

// Usage returns the amount in use now, and the numbers of refused and cut calls since the start.
func (b *Budget) Usage() (held, refused, cuts int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held, b.refused, b.cuts
}

// InUse returns the amount in use now.
func (b *Budget) InUse() int64 {
	held, _, _ := b.Usage()
	return held
}

// CountRefusal reports whether the budget would refuse n more to the client now, and counts the refusal if so. The
// caller must then refuse the call.
func (b *Budget) CountRefusal(client string, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.free(n) || b.within(client, n) {
		return false
	}
	b.refused++
	return true
}

// free reports whether the budget has n free units and an empty queue. A request larger than the whole budget is
// allowed when nothing else is held.
func (b *Budget) free(n int64) bool {
	return len(b.waiting) == 0 && b.fits(n)
}

func (b *Budget) fits(n int64) bool { return b.held == 0 || b.held+n <= b.bound }

// within reports whether a client stays within its share when it takes n more. The first call of a client always
// stays within the share.
func (b *Budget) within(client string, n int64) bool {
	claimed := b.claims[client]
	if claimed == 0 {
		return true
	}
	return claimed+n <= b.bound/int64(len(b.claims))
}

// Grow enlarges the hold by n, or returns false and leaves the hold unchanged. Grow may block in the queue. From the
// call of Grow on, other clients cannot cut the hold off until AllowCut permits it again.
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
	return true // admitted at the last moment
}

// makeRoom cuts off holds until the queued calls can be served.
func (b *Budget) makeRoom() {
	missing := b.held - b.bound
	for _, w := range b.waiting {
		missing += w.n
	}
	for h := range b.idlers {
		if h.lost {
			missing -= h.n // its part will soon be free
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

// largestToCut returns the largest hold that may be cut off. The hold belongs to the client that holds most and more
// than its share.
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

// admit grants queued calls in order while the budget has enough free units.
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

// Settle sets the hold to n units that are already in use. Settle never refuses a larger amount.
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

// Size returns the current amount of the hold.
func (h *Hold) Size() int64 { return h.n }

// Another returns a further empty hold for the same client.
func (h *Hold) Another() *Hold { return h.of.Open(h.client) }

// AllowCut sets the function that cuts the call off while the call waits for its client; nil means that the call no
// longer waits. The function must not block. The function is called at most once, and never after AllowCut(nil) or
// Close. AllowCut returns false when the call has been cut off.
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

// Close returns the hold to the budget. A second Close has no effect.
func (h *Hold) Close() {
	if h.n != 0 || h.cut != nil {
		h.AllowCut(nil)
		h.Settle(0)
	}
}
