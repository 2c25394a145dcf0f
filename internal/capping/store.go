package capping

import (
	"context"
	"time"
)

// Batch is one filter call: one message, many users.
type Batch struct {
	Message Message // its ID is "" only when Record is false; stores remember it, so that logs can be read by people
	Token   Token   // Message.Token()
	Channel Channel // of the send; 0: none

	Users  []UserID // distinct, any order (ascending is fastest)
	Groups []uint8  // Groups[i] is the index into Rules of Users[i]
	Rules  [][]Rule // rules by group; an empty group denies nobody

	// Record: append allowed sends to the logs. False: decide only, write nothing.
	Record bool
	// At: decide as of this instant, only with Record false. 0: now, by the
	// clock of the store, read as late as possible.
	At Instant
	// Retention is how long an entry is kept: the longest window of the
	// policy, widened. A store forgets by the longest that was in force within
	// itself, so that a limit that is gone for a moment erases nothing.
	Retention time.Duration
}

// Horizon is the instant at or before which entries are forgotten.
func (b *Batch) Horizon(now Instant) Instant {
	return now - Instant(b.Retention.Milliseconds())
}

// Released is what a release did for one user. The zero value is unknown.
type Released uint8

// The results of a release.
const (
	ReleaseUnavailable Released = iota // not known: release again
	ReleaseDone                        // the send was in the log and is no more
	ReleaseAbsent                      // the send was not in the log
)

// Recorder writes logs. It is safe for concurrent use.
//
// Every method ends within the deadline of ctx (give or take 50 ms). What was
// not decided by then is answered per user, in the result slice, which is as
// long as users, in their order, and zeroed by the caller. The error tells
// operators why users are unavailable; callers read the slice.
type Recorder interface {
	// Filter judges and records every user of the batch, each atomically, and
	// sets verdicts[i] for Users[i]. An Allowed or Replayed verdict is durable.
	// A user whose verdict is Unavailable may or may not have been recorded;
	// filtering again with the same message id settles it.
	Filter(ctx context.Context, b *Batch, verdicts []Verdict) error
	// Release removes the token's sends on the channel from the logs of the
	// users (distinct); 0: on every channel and on none.
	Release(ctx context.Context, token Token, channel Channel, users []UserID, released []Released) error
	// Erase removes the whole log of the user. Absent is no error.
	Erase(ctx context.Context, user UserID) error
}

// Reader reads logs. It is safe for concurrent use.
type Reader interface {
	// Log is the user's log, forgotten entries that are still stored included.
	Log(ctx context.Context, user UserID) (Log, error)
	// Messages finds the messages of tokens. Those that were not remembered
	// are absent from the map. See MessageMemory for which are.
	Messages(ctx context.Context, tokens []Token) (map[Token]Message, error)
	// Health is the store's state for /v1/status and readiness. It returns
	// within the deadline of ctx.
	Health(ctx context.Context) Health
}

// Store keeps the logs. The rules by which both implementations decide are
// those of Judge.
type Store interface {
	Recorder
	Reader
	// Close ends background work and releases what is held. No call may be
	// in flight.
	Close() error
}

// Health is a store's state.
type Health struct {
	Kind     string   `json:"kind"`               // "embedded" or "redis"
	Path     string   `json:"path,omitempty"`     // embedded: the directory
	State    string   `json:"state"`              // "ok", "degraded" (some users would be unavailable) or "down"
	Error    string   `json:"error,omitempty"`    // why it is not ok
	Warnings []string `json:"warnings,omitempty"` // what start-up checks found and tolerated
	Fleet    *Fleet   `json:"fleet,omitempty"`    // the instances that share the store; nil of a store of one
}

// Fleet is the instances that share a store, as one of them sees it.
type Fleet struct {
	Instances int            `json:"instances"`           // this one and those heard of lately
	Differing map[string]int `json:"differing,omitempty"` // by what differs: how many others differ from this one in it
	Made      time.Time      `json:"made,omitzero"`       // when the store was begun with nothing recorded
}
