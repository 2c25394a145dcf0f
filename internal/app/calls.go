package app

import (
	"context"
	"net/http"
	"sync"
)

// The type "calls" counts the running HTTP handlers, so that a stop of the service can wait for the handlers. An
// http.Server does not wait for a handler whose connection it has closed, but the handler may still use the store.
type calls struct {
	mu     sync.Mutex
	n      int
	closed bool
	idle   chan struct{} // closed when no call runs and new calls are refused
}

// The method "counted" returns a handler that calls the handler h and counts the running calls. After a call of the
// method end(), the returned handler aborts all requests.
func (c *calls) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !c.enter() {
			panic(http.ErrAbortHandler) // the connection is already closed, or will be closed soon
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

// end() makes the handlers refuse new calls, and waits until the running calls have ended. If ctx ends before the calls
// have ended, end() returns errRunning.
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
