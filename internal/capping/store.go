package capping

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Store keeps the log of each user's recorded sends. Every store decides by the rules of Judge and keeps the promises
// in doc.go. A Store is safe for concurrent use.
//
// Every method of a Store returns at most 50 ms after the deadline of ctx. In the result slice of a call to a Store,
// users without a decision before the deadline keep the zero value. If ctx has a Caller (see WithCaller) who has left,
// a store begins no further work. The caller passes a zeroed result slice with the
// length and order of the users. The error of a Store method is for operators, and is nil exactly when every user was
// decided. Callers read the decided users from the result slice, not from the error.
type Store interface {
	// Filter decides every user of the batch and sets verdicts[i] for Users[i]. If Batch.Record is true, Filter decides
	// and records each allowed send in one atomic step. An Allowed or Replayed verdict is durable. If a verdict is
	// Unavailable, the store may or may not have recorded the send. A retry with the same message id is safe, and
	// returns the result of the earlier attempt. If Batch.Check rejects b, Filter returns an error and does not change
	// the store.
	Filter(ctx context.Context, b *Batch, verdicts []Verdict) error
	// Release removes the sends of the message with the token on the channel from the users' logs. The users must be
	// distinct. Channel 0 stands for every channel, and also for sends without a channel. Sends that were certainly
	// recorded later than the Caller's call stay in the logs. If CheckRelease rejects the arguments, Release returns an
	// error and does not change the store.
	Release(ctx context.Context, token Token, channel Channel, users []UserID, released []Released) error
	// Erase removes the whole log of the user. Erase returns nil for a user without a log.
	Erase(ctx context.Context, user UserID) error
	// Log returns the user's log, including entries that are older than the retention but not removed yet.
	Log(ctx context.Context, user UserID) (Log, error)
	// Messages returns the messages of the tokens. The returned map lacks messages that the store does not remember.
	// The type MessageMemory selects the messages to remember.
	Messages(ctx context.Context, tokens []Token) (map[Token]Message, error)
	// Health returns the store's state for /v1/status and readiness, within the deadline of ctx.
	Health(ctx context.Context) Health
	// ClockTolerance returns the largest difference between the clocks that stamp sends. Zero means that one clock
	// stamps all sends. ClockTolerance always returns the same value. Rolling windows are longer by twice the clock
	// tolerance.
	ClockTolerance() time.Duration
	// Close stops background work and frees all resources. No call may be in progress when the caller closes the store.
	Close() error
}

// The function As returns the first value of type T among the store and the stores that it wraps, like errors.As for
// errors. Callers use As to find optional interfaces that only some stores implement, even when the store is wrapped
// for metrics.
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

// The function Widening returns the duration that the Capper adds to rolling windows for the store's clock tolerance.
func Widening(store Store) time.Duration { return 2 * store.ClockTolerance() }

// Health is the state of a store.
type Health struct {
	Kind     string   // "embedded" or "redis"
	Path     string   // for "embedded": the directory
	State    string   // "ok", "degraded" (some users would be unavailable) or "down"
	Error    string   // why the state is not ok
	Warnings []string // problems that start-up checks found and tolerated
	// NeedsRestart is true if the store is down until another process opens the store. NeedsRestart is false if a
	// restart would not help, or if a restart would lose records, so that people must decide.
	NeedsRestart bool
	Fleet        *Fleet // the instances that share the store; nil for a store of one instance
}

// Fleet describes the group of instances that share a store, as one of the instances sees the group.
type Fleet struct {
	Instances int            // this instance, and other instances with a recent heartbeat
	Differing map[string]int // by kind of difference: the number of other instances that differ
	Made      time.Time      // when the store was created without any record
}

// Rate is the request budget of an API client: a number of users per period of time. The zero Rate means no limit.
type Rate struct {
	UsersPerSecond int // users_per_second; 0: unlimited
	Burst          int // burst: the most users at once after a pause, and in a batch; 0: the value of UsersPerSecond
}

// The method Largest returns the largest number of users that one call may have.
func (r Rate) Largest() int { return cmp.Or(r.Burst, r.UsersPerSecond) }

// Check returns an error when the rate is invalid.
func (r Rate) Check() error {
	if r.UsersPerSecond < 0 || r.Burst < 0 {
		return errors.New("the burst and the users per second of a rate limit must not be negative")
	}
	if r.UsersPerSecond == 0 && r.Burst > 0 {
		return errors.New("a rate limit with 0 users per second must also have a burst of 0")
	}
	return nil
}

// RateState is the state of an API client's request budget after a call. RetryAfter and ResetAfter are zero when the
// API client can make its next call immediately.
type RateState struct {
	Allowed    bool
	Remaining  int           // the number of users that would be allowed at once now
	RetryAfter time.Duration // when Allowed is false: the time until the same call would be allowed
	ResetAfter time.Duration // the time until the whole burst is available again
}

// RateLimiter keeps the request budgets of clients. A store that several instances share is also a RateLimiter (see
// As), so that the instances share the clients' budgets. A RateLimiter is safe for concurrent use.
type RateLimiter interface {
	// Take subtracts users from the client's budget if the budget has enough for all of them. The argument "rate" must
	// have a limit, and the argument "users" must not exceed the burst of this rate. Take returns within the deadline
	// of ctx. If Take could not read the budget, Take returns an error, and the caller decides whether to allow the
	// call.
	Take(ctx context.Context, client string, rate Rate, users int) (RateState, error)
}

// Archiver is an optional interface of stores that can write an archive of themselves while they serve calls (see As).
type Archiver interface {
	// Backup writes an archive of the store's current data, with every send whose decision was returned before the call
	// of Backup. If Backup returns an error, the bytes written so far are useless.
	Backup(ctx context.Context, to io.Writer, channels map[string]Channel) error
}

// Accepter is an optional interface of stores whose servers may lose data while they serve calls (see As). If a server
// has lost data, users whose logs may be incomplete are Unavailable until an operator accepts the loss.
type Accepter interface {
	// AcceptLoss makes the affected users available again, with the log entries that remain, and returns the accepted
	// losses. AcceptLoss returns nil when no loss of data was open. The store keeps the operator's reason for the
	// acceptance. A *LossError means that the server still loses data.
	AcceptLoss(ctx context.Context, reason string) ([]AcceptedLoss, error)
}

// AcceptedLoss describes one loss of data by a server, and the time at which capper noticed the loss.
type AcceptedLoss struct {
	Node, Reason, What string
	Since              time.Time
	Partitions         int // the number of partitions whose users are affected
}

// LossError is the error of AcceptLoss while the server still loses data, because such a loss cannot be accepted yet.
type LossError struct{ Err error }

// Error returns the text of the wrapped error.
func (e *LossError) Error() string { return e.Err.Error() }

// FormatError is the error for a store with a format that this program cannot read. The program has not changed the
// store with the unknown format.
type FormatError struct {
	Marker string // the stored format marker; "": a store with data but without a marker
	Found  int    // the version in the marker; 0: not a marker of capper
	Oldest int    // the oldest version that this program reads
	Newest int    // the newest version, which this program writes
	Want   string // the marker of the newest version
	// IDs describes the kind of user ids in the store, and WantIDs the kind in the configuration, such as "dense". If
	// the ids are not the reason for the error, IDs and WantIDs are equal.
	IDs, WantIDs string
}

// Error returns the text of the FormatError, with the version of the store, the versions that this program reads, and
// the action to take.
func (e *FormatError) Error() string {
	reads := fmt.Sprintf("this version of capper reads the formats %d to %d", e.Oldest, e.Newest)
	if e.Oldest == e.Newest {
		reads = fmt.Sprintf("this version of capper reads format %d only", e.Newest)
	}
	switch {
	case e.IDs != e.WantIDs:
		return fmt.Sprintf("the users' ids in the store are %s, but those of this configuration are %s: use the "+
			"segments location that belongs to the store, or an empty namespace or directory (format marker %q)",
			e.IDs, e.WantIDs, e.Marker)
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
