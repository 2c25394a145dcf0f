package api

import "time"

// Messages is the answer of GET /v1/messages: campaigns in descending order of their latest call.
type Messages struct {
	Messages []Message `json:"messages"`
	More     bool      `json:"more"` // there are others: ask for a later since, or a larger max
}

// Message holds the counts of a message on one channel. Allowed and Released count the sends in the logs, exactly
// unless AtLeast is set. The other fields count answers, so a user who was in two calls counts twice.
type Message struct {
	MessageID string `json:"message_id"`
	Namespace string `json:"namespace,omitempty"`
	Channel   string `json:"channel"` // "": sent without one

	Allowed  int64 `json:"allowed"`  // sends that were recorded, each once however often it was asked for
	Released int64 `json:"released"` // of those, given back
	// AtLeast: Allowed and Released are lower bounds. The store recorded or released sends of the message without
	// counting them while Redis Cluster moved a slot. Left out: both are exact.
	AtLeast bool `json:"at_least,omitempty"`

	Calls    int64 `json:"calls"`
	Asked    int64 `json:"asked"`
	Replayed int64 `json:"replayed"`
	// by the name of the limit, or LimitSuppressed, LimitHoldout, LimitQuiet
	Denied       map[string]int64          `json:"denied"`
	Unavailable  int64                     `json:"unavailable"`
	Suppressed   map[string]int64          `json:"suppressed,omitempty"`    // by set
	ShadowDenied map[string]int64          `json:"shadow_denied,omitempty"` // by limit
	Segments     map[string]MessageSegment `json:"segments"`                // NoSegment for users in none

	FirstCall      time.Time `json:"first_call,omitzero"`
	LastCall       time.Time `json:"last_call,omitzero"`
	ConfigVersions []string  `json:"config_versions"`
}

// MessageSegment counts answers about the users of one segment.
type MessageSegment struct {
	Asked   int64 `json:"asked"`
	Allowed int64 `json:"allowed"` // replayed included
	Denied  int64 `json:"denied"`
}

// MessageChannels is the answer of GET /v1/messages/{id}: the counts of the message on each channel.
type MessageChannels struct {
	MessageID string    `json:"message_id"`
	Namespace string    `json:"namespace,omitempty"`
	Channels  []Message `json:"channels"`
}

// ReleaseMessageRequest is the body of POST /v1/messages/{id}/release.
type ReleaseMessageRequest struct {
	Channel string `json:"channel,omitempty"` // "": all
}

// ReleasedMessage is the answer to a release of a message. It counts the results for the sends that the audit holds.
type ReleasedMessage struct {
	MessageID   string `json:"message_id"`
	Channel     string `json:"channel,omitempty"`
	Found       int64  `json:"found"`       // users with grants in the audit
	Released    int64  `json:"released"`    // by this call
	Absent      int64  `json:"absent"`      // released before, or forgotten
	Unavailable int64  `json:"unavailable"` // not known: ask again
	// Missing are recorded sends that the audit does not hold yet, such as those of other
	// instances within their roll: ask again. 0: all are given back.
	Missing int64 `json:"missing"`
	// AtLeast: the counts that Missing is computed from are lower bounds (see Message), so Missing may be too small
	// or too large. Left out: Missing is exact.
	AtLeast bool `json:"at_least,omitempty"`
}

// AuditStatus is the state of the audit.
type AuditStatus struct {
	To string `json:"to"`
	// "ok", "behind" (records wait for the place) or "losing" (records are not kept)
	State         string    `json:"state"`
	Error         string    `json:"error,omitempty"` // the last one, while it is not ok
	Records       uint64    `json:"records"`         // since the start
	Lost          uint64    `json:"lost"`            // since the start
	WaitingBytes  int64     `json:"waiting_bytes"`   // written here and not yet at the place
	WaitingFiles  int       `json:"waiting_files"`
	FlushedAt     time.Time `json:"flushed_at,omitzero"`  // what was recorded before is on the disk
	UploadedAt    time.Time `json:"uploaded_at,omitzero"` // the last file
	BehindSeconds float64   `json:"behind_seconds"`       // age of the oldest record that is not flushed
}
