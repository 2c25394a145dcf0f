package app

import (
	"context"
	"net/http"
	"sync"
)

// calls counts the running handlers. An http.Server does not wait for handlers whose connections it has closed, but
// these handlers may still use the store.
type calls struct {
	mu     sync.Mutex
	n      int
	closed bool
	idle   chan struct{} // closed when no call runs and no call may start
}

// counted returns a handler that counts the calls of h. After end, the handler refuses calls.
func (c *calls) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !c.enter() {
			panic(http.ErrAbortHandler) // the connection is closed, or will be soon
		}
		defer c.leave()
		h.ServeHTTP(w, r)
	})
}

func (c *calls) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.n++
	return true
}

func (c *calls) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n--
	if c.closed && c.n == 0 {
		close(c.idle)
	}
}

// end refuses new calls and waits for the running ones. The error is errRunning when ctx ends first.
func (c *calls) end(ctx context.Context) error {
	c.mu.Lock()
	if !c.closed {
		c.closed, c.idle = true, make(chan struct{})
		if c.n == 0 {
			close(c.idle)
		}
	}
	c.mu.Unlock()
	select {
	case <-c.idle:
		return nil
	case <-ctx.Done():
		return errRunning
	}
}
