package gate

import (
	"hash/maphash"
	"strings"
	"sync"
	"time"

	"capper/client/api"
	"capper/internal/server/wire"
)

// The bounds of wrong keys. An address may fail guessBurst times with the same key id, and then once every guessEvery.
const (
	guessBurst = 10
	guessEvery = 2 * time.Second
	mostGuests = 4096 // remembered pairs of address and key id
)

// Guesses slows down callers who try secrets of an API key at the sign-in. It counts the wrong keys for each address
// and key id, so that people behind one address who have other keys never wait. Guesses does not know which ids exist,
// so that nobody can find that out by it. A Guesses is safe for concurrent use.
type Guesses struct {
	clock func() time.Time
	seed  maphash.Seed
	mu    sync.Mutex
	full  map[guest]time.Time // when the whole burst is available again
}

// guest is a caller who tries a key.
type guest struct {
	address string
	id      uint64 // hash of the key's id
}

// NewGuesses returns a Guesses without any wrong keys.
func NewGuesses(clock func() time.Time) *Guesses {
	return &Guesses{clock: clock, seed: maphash.MakeSeed(), full: map[guest]time.Time{}}
}

// Try counts a key from the address as a wrong one. The caller then checks the key and calls right if it is not wrong.
// Before the caller may try again, Try returns a failure with the wait.
func (g *Guesses) Try(address, key string) (right func(), err error) {
	id, _, _ := strings.Cut(key, ".")
	who := guest{address, maphash.String(g.seed, id)}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock()
	full := g.full[who]
	if full.Before(now) {
		full = now
	}
	if wait := full.Sub(now) - (guessBurst-1)*guessEvery; wait > 0 {
		f := wire.NewFailure(api.CodeRateLimited, "too many wrong API keys with this id came from this address")
		f.RetryAfter = wait
		return nil, f
	}
	g.makeRoom(who, now)
	g.full[who] = full.Add(guessEvery)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if full, known := g.full[who]; known {
			g.full[who] = full.Add(-guessEvery)
		}
	}, nil
}

// makeRoom forgets a guest if too many are remembered. It forgets the guest whose waiting time ends first.
func (g *Guesses) makeRoom(who guest, now time.Time) {
	if _, known := g.full[who]; known || len(g.full) < mostGuests {
		return
	}
	var first guest
	soonest := time.Time{}
	for other, full := range g.full {
		if !full.After(now) {
			delete(g.full, other)
		} else if soonest.IsZero() || full.Before(soonest) {
			first, soonest = other, full
		}
	}
	if len(g.full) >= mostGuests {
		delete(g.full, first)
	}
}
