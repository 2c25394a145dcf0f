package pacingtest

import (
	"math/rand/v2"
	"sync"
	"time"
)

// load runs clients until End is called; each client makes one call after another.
type load struct {
	Rest time.Duration // the pause of a client between two calls

	running sync.WaitGroup
	stop    chan struct{}
	ended   sync.Once
}

// begin starts clients with random numbers from the seed; each client has its own stream, from the given stream on.
// once makes a call, repeats the call if it must be answered, and returns how long to wait until the next call.
func (l *load) begin(clients int, seed, stream uint64, once func(*rand.Rand) time.Duration) {
	for i := range clients {
		rng := rand.New(rand.NewPCG(seed, stream+uint64(i)))
		l.running.Go(func() {
			for !l.stopped() {
				l.pause(max(l.Rest, once(rng)))
			}
		})
	}
}

// End stops the clients and waits for them. A client that repeats a request stops when the request is answered. Defer
// End, so that the load also stops when a test fails.
func (l *load) End() {
	l.ended.Do(func() { close(l.stop) })
	l.running.Wait()
}

func (l *load) stopped() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

// pause waits for the duration d, or until End is called.
func (l *load) pause(d time.Duration) {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-l.stop:
		case <-timer.C:
		}
	}
}
