package pacingtest

import (
	"math/rand/v2"
	"sync"
	"time"
)

// The type "load" runs test clients until End is called; each client makes one call after another.
type load struct {
	Rest time.Duration // the pause of a client between two calls

	running sync.WaitGroup
	stop    chan struct{}
	ended   sync.Once
}

// The method "begin" starts test clients, each with its own stream of random numbers from the seed. The first client
// gets the given stream. The argument "once" of the method "begin" is a function that makes one call and repeats the
// call if it needs a result. The result of "once" is the pause until the next call.
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

// The method End stops the test clients and waits for them. A client that repeats a request stops only after a reply to
// the request. A test should defer End, so that the load also stops when the test fails.
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

// The method "pause" waits for the duration d, or until the test calls End.
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
