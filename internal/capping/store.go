package capping

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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
	// NeedsRestart: it is down, and stays so until it is opened again by another process. It is not
	// set where a restart would change nothing, or begin anew with less than was recorded: that is
	// for people to decide.
	NeedsRestart bool
	Fleet        *Fleet // the instances that share the store; nil of a store of one
}

// Fleet is the instances that share a store, as one of them sees it.
type Fleet struct {
	Instances int            // this one and those heard of lately
	Differing map[string]int // by what differs: how many others differ from this one in it
	Made      time.Time      // when the store was begun with nothing recorded
}

// Rate is how many users a client may have decided. The zero value is no limit.
type Rate struct {
	UsersPerSecond int // users_per_second; 0: unlimited
	Burst          int // burst: users at once after a pause, and so the largest batch; 0: UsersPerSecond
}

// Largest is how many users may be decided at once.
func (r Rate) Largest() int { return cmp.Or(r.Burst, r.UsersPerSecond) }

// Check reports what makes r no rate.
func (r Rate) Check() error {
	if r.UsersPerSecond < 0 || r.Burst < 0 {
		return errors.New("users per second and burst must not be negative")
	}
	if r.UsersPerSecond == 0 && r.Burst > 0 {
		return errors.New("a burst requires users per second")
	}
	return nil
}

// RateState is what a client may ask for after a call. RetryAfter and
// ResetAfter are zero when there is nothing to wait for.
type RateState struct {
	Allowed    bool
	Remaining  int           // users that would be allowed at once now
	RetryAfter time.Duration // Allowed false: until the same call would be allowed
	ResetAfter time.Duration // until the whole burst is there again
}

// RateLimiter keeps the rates of clients. A store that several instances share
// is one too (see As), so that they share the clients' budgets. It is safe for
// concurrent use.
type RateLimiter interface {
	// Take takes users from the client's budget, all or nothing. rate is
	// limited, and users are at most its burst. It returns within the deadline
	// of ctx; an error is that the budget could not be reached, and what then
	// is for the caller to decide.
	Take(ctx context.Context, client string, rate Rate, users int) (RateState, error)
}

// Archiver is what stores can do that write an archive of themselves while they serve (see As).
type Archiver interface {
	// Backup writes an archive of the store as it is now: what was answered before is in it. An error is
	// that what was written is of no use.
	Backup(ctx context.Context, to io.Writer, channels map[string]Channel) error
}

// Accepter is what stores can do whose servers may break a promise while they serve (see As): the users
// whose logs may not be whole are unavailable until somebody has said that it was looked at.
type Accepter interface {
	// AcceptLoss has these users decided again, on what is left, and is what was accepted; nil: nothing was
	// to accept. The reason is kept with it. A *LossError is that a promise is broken still.
	AcceptLoss(ctx context.Context, reason string) ([]AcceptedLoss, error)
}

// AcceptedLoss is what a server did, and when it was seen.
type AcceptedLoss struct {
	Node, Reason, What string
	Since              time.Time
	Partitions         int // whose users it concerns
}

// LossError is why a loss cannot be accepted.
type LossError struct{ Err error }

// Error is why.
func (e *LossError) Error() string { return e.Err.Error() }

// FormatError is that a store's bytes are in a format that this program does
// not read. Nothing was changed in it.
type FormatError struct {
	Marker string // the stored format marker; "": none, in a store that is not empty
	Found  int    // the version that the marker names; 0: it is no marker of capper's
	Oldest int    // the oldest version that this program reads
	Newest int    // the newest one, which it writes
	Want   string // the marker of the newest one
}

// Error names both versions and says what to do.
func (e *FormatError) Error() string {
	reads := fmt.Sprintf("this version of capper reads the formats %d to %d", e.Oldest, e.Newest)
	if e.Oldest == e.Newest {
		reads = fmt.Sprintf("this version of capper reads format %d only", e.Newest)
	}
	switch {
	case e.Marker == "":
		return "the Redis namespace or directory has data without the format marker of capper: not a capper store"
	case e.Found > e.Newest:
		return fmt.Sprintf("the logs have format %d, which a newer version of capper wrote, but %s: start the newer "+
			"version again; only a copy from before the upgrade can be used with this version (format marker %q)",
			e.Found,
			reads, e.Marker)
	case e.Found > 0 && e.Found < e.Oldest:
		return fmt.Sprintf("the logs have format %d, but %s: start a version that supports both and let it finish "+
			"the upgrade first (format marker %q)", e.Found, reads,
			e.Marker)
	}
	return fmt.Sprintf("the stored format marker is %q, but this version of capper uses %q: the store belongs to "+
		"another build", e.Marker, e.Want)
}
