package whatif

import (
	"context"
	"sync"
	"time"

	"capper/internal/capping"
)

// logs is the histories as a store that a capper asks. It decides and records nothing:
// who is sent what stands in the histories when a call has been settled.
type logs struct {
	*histories
	widen time.Duration

	mu     sync.Mutex // of what follows: parts of a call with very many rules are asked side by side
	places []uint32
	// headers is the sum of what was read ahead; nobody asks for it.
	headers uint32
	log     []byte
	bare    []capping.Verdict // by group, of users without a history
	known   []bool            // which of bare are
}

var _ capping.Store = (*logs)(nil)

// Filter judges every user of the batch by capping.Judge. It goes over the users
// three times, so that the memory of many is asked for at once.
func (l *logs) Filter(_ context.Context, b *capping.Batch, verdicts []capping.Verdict) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.places = l.places[:0]
	for _, user := range b.Users {
		l.places = append(l.places, l.pages[user>>16].place(uint16(user)))
	}
	for i, place := range l.places { // asks for all blocks before the first is needed
		if place != 0 {
			l.headers += *l.pages[b.Users[i]>>16].header(place)
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
		verdicts[i] = capping.Judge(l.of(b.Users[i], place), b.Channel, b.Token, b.Rules[group], b.At, horizon)
	}
	return nil
}

// of is the log of the user whose block is at a place.
func (l *logs) of(user capping.UserID, place uint32) capping.Log {
	_, other := l.pages[user>>16].histories(place)
	l.log = l.log[:0]
	for _, call := range other {
		l.log = append(l.log, l.entry(call)...)
	}
	return l.log
}

// resized is a slice of n zero values, in the memory of s if there is room.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// ClockTolerance is by how much the clocks of the store differed whose decisions were recorded.
func (l *logs) ClockTolerance() time.Duration { return l.widen / 2 }

// Release is not for a store of histories: releases are settled as they are recorded.
func (l *logs) Release(context.Context, capping.Token, capping.Channel, []capping.UserID, []capping.Released) error {
	return errNotAsked
}

// Erase is not for a store of histories.
func (l *logs) Erase(context.Context, capping.UserID) error { return errNotAsked }

// Log is not for a store of histories.
func (l *logs) Log(context.Context, capping.UserID) (capping.Log, error) { return nil, errNotAsked }

// Messages is not for a store of histories.
func (l *logs) Messages(context.Context, []capping.Token) (map[capping.Token]capping.Message, error) {
	return nil, errNotAsked
}

// Health is that all is well.
func (l *logs) Health(context.Context) capping.Health {
	return capping.Health{Kind: "what-if", State: "ok"}
}

// Close has nothing to free.
func (l *logs) Close() error { return nil }
