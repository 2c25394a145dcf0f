package wire

import (
	"context"
	"slices"
	"sync"

	"capper/client/api"
)

// These constants limit the concurrent and the waiting evaluations of audience expressions. One evaluation of an
// audience expression uses all cores, so more concurrent evaluations would not be faster.
const (
	atOnce     = 2
	maxWaiting = 64 // maximum number of waiting calls of one holder
)

// The type "turns" limits the number of concurrent evaluations of audience expressions. The clients of waiting calls
// take turns.
type turns struct {
	mu      sync.Mutex
	working int
	waiting map[string][]chan struct{} // queue of each holder; a closed channel may start
	order   []string                   // waiting holders, in the order of their turns
}

// take() waits until the client (holder) may start to evaluate an audience expression, or until ctx ends. At the end of
// the evaluation, the caller must call the function that take() returned.
func (t *turns) take(ctx context.Context, holder string) (end func(), err error) {
	turn, err := t.queue(holder)
	if err != nil {
		return nil, err
	}
	select {
	case <-turn:
		return t.end, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.leave(holder, turn) { // the call's turn came at the moment when ctx ended
		t.pass()
	}
	return nil, ctx.Err()
}

// The method queue adds a call to the queue of its client (holder). The Go channel that queue() returns is closed when
// the call may start its evaluation, which may be immediately.
func (t *turns) queue(holder string) (turn chan struct{}, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	turn = make(chan struct{})
	switch {
	case t.working < atOnce:
		t.working++
		close(turn)
		return turn, nil
	case len(t.waiting[holder]) >= maxWaiting:
		return nil, Overloaded("too many audiences of this client are waiting")
	case t.waiting == nil:
		t.waiting = map[string][]chan struct{}{}
	}
	if len(t.waiting[holder]) == 0 {
		t.order = append(t.order, holder)
	}
	t.waiting[holder] = append(t.waiting[holder], turn)
	return turn, nil
}

func (t *turns) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pass()
}

// pass() lets the next client (holder) start an evaluation: the client that has waited longest since its last
// evaluation. The caller of pass() must hold t.mu.
func (t *turns) pass() {
	if len(t.order) == 0 {
		t.working--
		return
	}
	holder := t.order[0]
	t.order = t.order[1:]
	turn := t.waiting[holder][0]
	if t.waiting[holder] = t.waiting[holder][1:]; len(t.waiting[holder]) > 0 {
		t.order = append(t.order, holder)
	} else {
		delete(t.waiting, holder)
	}
	close(turn)
}

// The method leave removes a call from the queue of its client (holder). If the call is no longer in the queue, leave()
// returns false. The caller of leave() must hold t.mu.
func (t *turns) leave(holder string, turn chan struct{}) bool {
	at := slices.Index(t.waiting[holder], turn)
	if at < 0 {
		return false
	}
	if t.waiting[holder] = slices.Delete(t.waiting[holder], at, at+1); len(t.waiting[holder]) == 0 {
		delete(t.waiting, holder)
		t.order = slices.DeleteFunc(t.order, func(other string) bool { return other == holder })
	}
	return true
}

// The function "late" returns the failure of a call whose audience evaluation did not start or did not finish in time.
func late(err error) error {
	f := NewFailure(api.CodeUnavailable, "the audience could not be computed in time: try again")
	f.RetryAfter, f.Cause = overloadedFor, err
	return f
}
