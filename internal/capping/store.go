package capping

import (
	"context"
	"time"
)

// Store keeps the logs. The rules by which every store decides are those of
// Judge; doc.go says what else each one owes. It is safe for concurrent use.
//
// Every method ends within the deadline of ctx (give or take 50 ms). What was
// not decided by then is answered per user, in the result slice, which is as
// long as users, in their order, and zeroed by the caller. The error tells
// operators why users are unavailable; callers read the slice. It is nil
// exactly when every user was decided.
type Store interface {
	// Filter judges and records every user of the batch, each atomically, and
	// sets verdicts[i] for Users[i]. An Allowed or Replayed verdict is durable.
	// A user whose verdict is Unavailable may or may not have been recorded;
	// filtering again with the same message id settles it. A batch that
	// Batch.Check refuses is an error and leaves the store as it was.
	Filter(ctx context.Context, b *Batch, verdicts []Verdict) error
	// Release removes the token's sends on the channel from the logs of the
	// users (distinct); 0: on every channel and on none. What CheckRelease
	// refuses is an error and leaves the store as it was.
	Release(ctx context.Context, token Token, channel Channel, users []UserID, released []Released) error
	// Erase removes the whole log of the user. Absent is no error.
	Erase(ctx context.Context, user UserID) error
	// Log is the user's log, forgotten entries that are still stored included.
	Log(ctx context.Context, user UserID) (Log, error)
	// Messages finds the messages of tokens. Those that were not remembered
	// are absent from the map. See MessageMemory for which are.
	Messages(ctx context.Context, tokens []Token) (map[Token]Message, error)
	// Health is the store's state for /v1/status and readiness. It returns
	// within the deadline of ctx.
	Health(ctx context.Context) Health
	// ClockTolerance is by how much the clocks that stamp sends may differ; 0:
	// there is one clock. It never changes. Windows are longer by twice that.
	ClockTolerance() time.Duration
	// Close ends background work and frees what is held. No call may be in
	// flight.
	Close() error
}

// As finds the first T among the store and the stores that it wraps, as
// errors.As does among errors: what only some stores can do is asked of them
// through an interface, also when the store is measured.
func As[T any](store Store) (found T, ok bool) {
	for store != nil {
		if found, ok = store.(T); ok {
			return found, true
		}
		wrapper, wraps := store.(interface{ Unwrap() Store })
		if !wraps {
			break
		}
		store = wrapper.Unwrap()
	}
	return found, false
}

// Widening is how much longer rolling windows are over the store.
func Widening(store Store) time.Duration { return 2 * store.ClockTolerance() }

// Health is a store's state.
type Health struct {
	Kind     string   // "embedded" or "redis"
	Path     string   // embedded: the directory
	State    string   // "ok", "degraded" (some users would be unavailable) or "down"
	Error    string   // why it is not ok
	Warnings []string // what start-up checks found and tolerated
	Fleet    *Fleet   // the instances that share the store; nil of a store of one
}

// Fleet is the instances that share a store, as one of them sees it.
type Fleet struct {
	Instances int            // this one and those heard of lately
	Differing map[string]int // by what differs: how many others differ from this one in it
	Made      time.Time      // when the store was begun with nothing recorded
}
