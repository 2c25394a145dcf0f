package pacing

import (
	"context"
	"sync"
)

// underway holds the requests that calls of this instance are asking for. A call may ask the store several times, so a
// repetition that came between two of them would get a part of the grant.
type underway struct {
	mu    sync.Mutex
	calls map[Request]chan struct{} // closed when the call ends
}

// enter waits until no other call asks for the request. The caller must call leave. A call without a request waits for
// nobody. enter returns the cause of ctx when ctx ends first.
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
