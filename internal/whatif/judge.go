package whatif

import (
	"context"
	"sync"
	"time"

	"capper/internal/capping"
)

// The type "logs" is a read-only store. A capping.Capper reads the histories of the replay through logs, as if they
// were users' logs. The type "logs" records no sends: the replay adds the sends to the histories after it has decided a
// call.
type logs struct {
	*histories
	widen time.Duration

	mu     sync.Mutex       // guards the fields below, because batches of a call with many rules run in parallel
	users  []capping.UserID // by the numbers of the histories, where ids are not dense
	places []uint32
	// The field headers is the sum of the prefetched headers. No code reads the field; the sum only prevents the
	// compiler from removing the prefetching reads.
	headers uint32
	log     []byte
	bare    []capping.Verdict // by group: verdict for users without a history
	known   []bool            // by group: whether bare has the verdict
}

var _ capping.Store = (*logs)(nil)

// The method Filter decides every user of the batch with the function capping.Judge. The method Filter iterates over
// the users three times. In the first iterations, the processor loads the memory of many users in parallel.
func (l *logs) Filter(_ context.Context, b *capping.Batch, verdicts []capping.Verdict) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	users := l.numbers.Of(&l.users, b.Users)
	l.places = l.places[:0]
	for _, user := range users {
		l.places = append(l.places, l.pages[user>>16].place(uint16(user)))
	}
	for i, place := range l.places { // loads all blocks before the first is needed
		if place != 0 {
			l.headers += *l.pages[users[i]>>16].header(place)
		}
	}
	l.bare, l.known = resized(l.bare, len(b.Rules)), resized(l.known, len(b.Rules))
	horizon := b.Horizon(b.At)
	for i, place := range l.places {
		group := b.Groups[i]
		if place == 0 {
			if !l.known[group] {
				l.bare[group] = capping.Judge(nil, b.Channel, b.Token, b.Rules[group], b.At, horizon)
				l.known[group] = true
			}
			verdicts[i] = l.bare[group]
			continue
		}
		verdicts[i] = capping.Judge(l.of(users[i], place), b.Channel, b.Token, b.Rules[group], b.At, horizon)
	}
	return nil
}

// The method "of" returns the log of a user. The argument "place" of the method "of" is the location of the memory
// block with the user's sends.
func (l *logs) of(user capping.UserID, place uint32) capping.Log {
	_, other := l.pages[user>>16].histories(place)
	l.log = l.log[:0]
	for _, call := range other {
		l.log = append(l.log, l.entry(call)...)
	}
	return l.log
}

// The function "resized" returns a slice of n zero values. If the slice "s" has enough capacity, resized reuses the
// memory of "s".
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// ClockTolerance returns the clock tolerance of the store that made the recorded decisions.
func (l *logs) ClockTolerance() time.Duration { return l.widen / 2 }

// Release returns errNotAsked, because a replay removes released sends from the histories without the store.
func (l *logs) Release(context.Context, capping.Token, capping.Channel, []capping.UserID, []capping.Released) error {
	return errNotAsked
}

// Erase returns errNotAsked, because a replay never erases users.
func (l *logs) Erase(context.Context, capping.UserID) error { return errNotAsked }

// Log returns errNotAsked, because a replay never calls Log.
func (l *logs) Log(context.Context, capping.UserID) (capping.Log, error) { return nil, errNotAsked }

// Messages returns errNotAsked, because a replay never calls Messages.
func (l *logs) Messages(context.Context, []capping.Token) (map[capping.Token]capping.Message, error) {
	return nil, errNotAsked
}

// Health reports that logs is healthy, because reading memory cannot fail.
func (l *logs) Health(context.Context) capping.Health {
	return capping.Health{Kind: "what-if", State: "ok"}
}

// Close does nothing, because logs holds no resources.
func (l *logs) Close() error { return nil }
