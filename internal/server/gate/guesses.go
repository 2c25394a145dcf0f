package gate

import (
	"hash/maphash"
	"strings"
	"sync"
	"time"

	"capper/client/api"
	"capper/internal/server/wire"
)

// These constants limit the attempts to sign in with wrong API keys. With one key id, each network address may fail
// guessBurst times. After guessBurst failures, the address may fail one time in every period of guessEvery.
const (
	guessBurst = 10
	guessEvery = 2 * time.Second
	mostGuests = 4096 // maximum number of pairs of address and key id in memory
)

// The type Guesses delays callers who guess the secret of an API key at the sign-in. The type Guesses counts wrong keys
// for each pair of network address and key id. People behind the same address who use other keys therefore never wait.
// The type Guesses treats existing and unknown key ids alike, so that nobody can find out which ids exist. A Guesses is
// safe for concurrent use.
type Guesses struct {
	clock func() time.Time
	seed  maphash.Seed
	mu    sync.Mutex
	full  map[guest]time.Time // time at which the whole burst is available again
}

// A guest is a pair of network address and key id with sign-in attempts that had wrong keys.
type guest struct {
	address string
	id      uint64 // hash of the key id
}

// NewGuesses returns a Guesses that has not counted any wrong keys yet.
func NewGuesses(clock func() time.Time) *Guesses {
	return &Guesses{clock: clock, seed: maphash.MakeSeed(), full: map[guest]time.Time{}}
}

// The method Try first counts a sign-in attempt from the address as an attempt with a wrong key. After Try, the caller
// checks the key. If the key is valid, the caller calls the returned function "right". If the address must wait before
// a further attempt with the key id, Try returns a failure that names the wait.
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

// makeRoom removes a guest (pair of network address and key id) from memory if there are too many guests. The method
// makeRoom removes the guest whose waiting time ends first.
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
