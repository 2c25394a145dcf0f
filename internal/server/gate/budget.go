package gate

import (
	"sync"
	"time"
)

// A Budget limits the total amount of a resource, such as users or bytes, that all simultaneous calls hold. All clients
// whose calls run or wait share the budget fairly. Any client may take free units (users or bytes) of the budget. While
// no other client uses the budget, one client can use the whole budget. When the budget is exhausted, the share of each
// client is the budget divided by the number of clients that use the budget:
//
//   - The budget refuses a call of a client that already holds its share.
//   - A call of a client that holds less than its share waits in a first-in, first-out queue, for at most the duration
//     in the constant patience.
//
// While calls wait in the queue of the budget, the budget cuts off (disconnects) calls of the client that holds most.
// The budget cuts off only calls that are waiting for the client to send or read. The client that holds most never has
// calls in the queue, because all clients with calls in the queue hold less than their shares.
type Budget struct {
	bound    int64
	patience time.Duration

	mu      sync.Mutex
	held    int64
	claims  map[string]int64   // by client: the amount that the client's calls hold or wait for
	idlers  map[*Hold]struct{} // holds whose calls can be cut off
	waiting []*waiter
	refused int64 // number of refused calls since the start
	cuts    int64 // number of calls that were cut off since the start
}

// A Hold is the amount (of users or bytes) that one call has taken from a Budget. Only one goroutine at a time may call
// the methods of a Hold.
type Hold struct {
	of     *Budget
	client string
	n      int64
	cut    func() // ends the call's wait for its client; nil: the call does not wait
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

// Open returns an empty Hold for a call of the client.
func (b *Budget) Open(client string) *Hold { return &Hold{of: b, client: client} }

// Usage returns the amount of the budget in use now, and the numbers of calls that the budget has refused and cut off
// since the start.
func (b *Budget) Usage() (held, refused, cuts int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held, b.refused, b.cuts
}

// InUse returns the amount of the budget that calls hold now.
func (b *Budget) InUse() int64 {
	held, _, _ := b.Usage()
	return held
}

// CountRefusal reports whether the budget would now refuse n units (users or bytes) to the client. If CountRefusal
// returns true, it also increases the number of refused calls, and its caller must refuse the API call.
func (b *Budget) CountRefusal(client string, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.free(n) || b.within(client, n) {
		return false
	}
	b.refused++
	return true
}

// The method "free" reports whether n units (users or bytes) of the budget are free and no call is waiting. If no other
// call holds units of the budget, one call may take more units than the whole budget has.
func (b *Budget) free(n int64) bool {
	return len(b.waiting) == 0 && b.fits(n)
}

func (b *Budget) fits(n int64) bool { return b.held == 0 || b.held+n <= b.bound }

// The method "within" reports whether a client that takes n more units (users or bytes) stays within its fair share of
// the budget. The first call of a client is always within the client's share of the budget.
func (b *Budget) within(client string, n int64) bool {
	claimed := b.claims[client]
	if claimed == 0 {
		return true
	}
	return claimed+n <= b.bound/int64(len(b.claims))
}

// The method Grow takes n more units (users or bytes) from the budget for the call, or takes no units and returns
// false. Grow may wait until other calls give units back to the budget. After Grow, the budget cannot cut off
// (disconnect) the API call until AllowCut permits this again.
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
	return true // the budget admitted the call at the moment when the wait ended
}

// makeRoom cuts off running calls until the budget has enough free units for the waiting calls.
func (b *Budget) makeRoom() {
	missing := b.held - b.bound
	for _, w := range b.waiting {
		missing += w.n
	}
	for h := range b.idlers {
		if h.lost {
			missing -= h.n // the units of a call that was cut off will soon be free
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

// largestToCut returns the largest Hold (amount that a call has taken) whose call the budget may cut off. The
// returned Hold belongs to the client that holds most of the budget, if this client holds more than its share.
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

// The method admit grants units of the budget to the waiting calls, in order, while enough units are free.
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

// The method Settle sets the amount of the Hold to the n units (users or bytes) that the call really uses. The method
// Settle never refuses the call, even if the budget is exhausted.
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

// Size returns the number of units (users or bytes) of the budget that the Hold has now.
func (h *Hold) Size() int64 { return h.n }

// The method Another returns a second, empty Hold for the client.
func (h *Hold) Another() *Hold { return h.of.Open(h.client) }

// AllowCut sets the function "cut", with which the budget may cut off a call that waits for its client to send or
// read. A nil function "cut" means that the call no longer waits for its client. The function "cut" must not block.
// The budget calls the function "cut" at most once, and never after AllowCut(nil) or Close. If the budget has already
// cut off the call, AllowCut returns false.
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

// WasCut reports whether the budget has cut off the call of the Hold.
func (h *Hold) WasCut() bool {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	return h.lost
}

// Close gives all units (users or bytes) of the Hold back to the budget.
func (h *Hold) Close() {
	if h.n != 0 || h.cut != nil {
		h.AllowCut(nil)
		h.Settle(0)
	}
}
