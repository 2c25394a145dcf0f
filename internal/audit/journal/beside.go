package journal

import (
	"context"
	"sync"
)

// The type beside runs functions in the background, and lets a caller wait for their end.
type beside struct {
	mu      sync.Mutex
	idle    *sync.Cond // signalled when the work of an epoch has ended
	waiting sync.Mutex // allows one waiting caller at a time
	epoch   int        // the epoch of work that begins now
	running [2]int
}

func (b *beside) begin(work func()) {
	b.mu.Lock()
	epoch := b.epoch
	b.running[epoch]++
	b.mu.Unlock()
	go func() {
		defer b.end(epoch)
		work()
	}()
}

func (b *beside) end(epoch int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running[epoch]--; b.running[epoch] == 0 {
		b.idle.Broadcast()
	}
}

// The method wait waits for the background functions that began before the call of wait, and not for functions that
// begin later. When ctx ends, the method returns early.
func (b *beside) wait(ctx context.Context) error {
	b.waiting.Lock()
	defer b.waiting.Unlock()
	stop := context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.idle.Broadcast()
	})
	defer stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	for range 2 { // the work of an abandoned wait, and the work since then
		for b.running[1-b.epoch] > 0 && ctx.Err() == nil {
			b.idle.Wait()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		b.epoch = 1 - b.epoch
	}
	return nil
}
