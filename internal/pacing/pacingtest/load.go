package pacingtest

import (
	"math/rand/v2"
	"sync"
	"time"
)

// load is a number of clients that call one after another until it ends.
type load struct {
	Rest time.Duration // the pause between the calls of a client

	running sync.WaitGroup
	stop    chan struct{}
	ended   sync.Once
}

// begin starts clients with random numbers from the seed and stream on. once makes a call, repeats it where it must be
// answered, and returns how long to wait.
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

// End stops the clients. A client with an open request stops when the request is answered. Defer End, so that the load
// also stops when a test fails.
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

// pause waits for d, or until End is called.
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
