package pacing

import (
	"context"
	"sync"
)

// The type "underway" ensures that only one call of this instance at a time works on the same request for permits. A
// call may ask the store in several steps. If the caller repeated the call between two steps, the repeated call would
// get only a part of the permits.
type underway struct {
	mu    sync.Mutex
	calls map[Request]chan struct{} // closed when the call ends
}

// The method "enter" waits until no other call of this instance works on the same request for permits. The caller of
// "enter" must call the returned function "leave" when its work on the request is finished. If the call has no request
// id, the method "enter" does not wait. If ctx ends during the wait, "enter" returns the cause of ctx.
func (u *underway) enter(ctx context.Context, r Request) (leave func(), err error) {
	if r == (Request{}) {
		return func() {}, nil
	}
	for {
		u.mu.Lock()
		other := u.calls[r]
		if other == nil {
			ended := make(chan struct{})
			u.calls[r] = ended
			u.mu.Unlock()
			return func() { u.leave(r, ended) }, nil
		}
		u.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (u *underway) leave(r Request, ended chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.calls, r)
	close(ended)
}
