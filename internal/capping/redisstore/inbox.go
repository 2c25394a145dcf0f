package redisstore

import "sync"

// inbox takes calls from lanes without ever making them wait.
type inbox struct {
	mu     sync.Mutex
	calls  []*call
	signal chan struct{} // of capacity 1: there are calls
}

func (b *inbox) put(calls []*call) {
	b.mu.Lock()
	b.calls = append(b.calls, calls...)
	b.mu.Unlock()
	select {
	case b.signal <- struct{}{}:
	default:
	}
}

// drain moves what is there to into.
func (b *inbox) drain(into []*call) []*call {
	b.mu.Lock()
	defer b.mu.Unlock()
	into = append(into, b.calls...)
	clear(b.calls)
	b.calls = b.calls[:0]
	return into
}
