package api

import "time"

// The type Messages is the response to GET /v1/messages: a page of messages (campaigns) with their counts, by default
// the latest call first.
type Messages struct {
	Messages []Message `json:"messages"`
	More     bool      `json:"more"` // the list has another page
	Next     *string   `json:"next"` // value of the parameter "cursor" for the next page; nil: no more
}

// Message holds the counts of a message on one channel. The fields Allowed and Released count the recorded sends; these
// counts are exact unless the field AtLeast is true. All other counts, such as Denied, count results of filter calls: a
// user who was in two filter calls about the message counts twice.
type Message struct {
	MessageID string `json:"message_id"`
	Namespace string `json:"namespace,omitempty"`
	Title     string `json:"title,omitempty"` // name of the message for people
	Channel   string `json:"channel"`         // "": sent without one

	Allowed  int64 `json:"allowed"`  // recorded sends; a retry does not count again
	Released int64 `json:"released"` // recorded sends that were released
	// AtLeast means that Allowed and Released are lower bounds. While Redis Cluster moved a hash slot, the store
	// recorded or released sends of the message without counting these sends. If AtLeast is left out, Allowed and
	// Released are exact.
	AtLeast bool `json:"at_least,omitempty"`

	Calls    int64 `json:"calls"`
	Asked    int64 `json:"asked"`
	Replayed int64 `json:"replayed"`
	// by the name of the limit, or LimitSuppressed, LimitHoldout, LimitQuiet
	Denied       map[string]int64          `json:"denied"`
	Unavailable  int64                     `json:"unavailable"`
	Suppressed   map[string]int64          `json:"suppressed,omitempty"`    // by set
	ShadowDenied map[string]int64          `json:"shadow_denied,omitempty"` // by limit
	Segments     map[string]MessageSegment `json:"segments"`                // NoSegment for users without a segment

	FirstCall      time.Time `json:"first_call,omitzero"`
	LastCall       time.Time `json:"last_call,omitzero"`
	ConfigVersions []string  `json:"config_versions"`

	// Users counts the distinct users according to the audit (record of decisions). Users is nil without an audit, or
	// if the request did not ask for users.
	Users *MessageUsers `json:"users,omitempty"`
	// FromAudit means that the store does not count the message, so all counts come from the audit.
	FromAudit bool `json:"from_audit,omitempty"`
}

// MessageUsers counts the distinct users of a message on one channel by their latest result in the audit (record of
// decisions). The field Asked is the sum of all other counts in a MessageUsers. A user with a recorded send of the
// message counts as allowed, even if a later call denied the message to the user.
type MessageUsers struct {
	Asked    int64 `json:"asked"`
	Allowed  int64 `json:"allowed"`  // with a send that was not released
	Released int64 `json:"released"` // with a send that was released
	// without a send, by the name of the limit, or LimitSuppressed, LimitHoldout, LimitQuiet
	Denied      map[string]int64 `json:"denied"`
	Suppressed  map[string]int64 `json:"suppressed,omitempty"` // users denied by LimitSuppressed, by set
	Unavailable int64            `json:"unavailable"`          // unknown result
	Since       time.Time        `json:"since"`                // time of the first record in the audit
	// Segments counts the users by segment. The segments are from the generation in use now, which the field Generation
	// names. The calls may have used other generations. Segments without users are left out.
	Segments   map[string]MessageSegmentUsers `json:"segments,omitempty"`
	Generation string                         `json:"generation,omitempty"`
}

// MessageSegmentUsers counts the distinct users of a message who are in one segment. The field Asked is the sum of all
// other counts in a MessageSegmentUsers.
type MessageSegmentUsers struct {
	Asked       int64 `json:"asked"`
	Allowed     int64 `json:"allowed"`
	Released    int64 `json:"released"`
	Denied      int64 `json:"denied"`
	Unavailable int64 `json:"unavailable"`
}

// MessageSegment counts the results of filter calls about a message for the users of one segment.
type MessageSegment struct {
	Asked   int64 `json:"asked"`
	Allowed int64 `json:"allowed"` // includes replayed
	Denied  int64 `json:"denied"`
}

// MessageChannels is the response to GET /v1/messages/{id}: the counts of the message on each channel.
type MessageChannels struct {
	MessageID string    `json:"message_id"`
	Namespace string    `json:"namespace,omitempty"`
	Title     string    `json:"title,omitempty"` // name of the message for people
	Channels  []Message `json:"channels"`        // empty if the message has a title and no calls
	// unreadable audit files, whose users are missing
	Faults []string `json:"faults,omitempty"`
}

// TitleRequest is the body of PUT /v1/messages/{id}, which sets the title of a message.
type TitleRequest struct {
	Title string `json:"title"` // at most 200 characters; "": none
}

// MessageTitle is the response to PUT /v1/messages/{id}, which sets the title of a message.
type MessageTitle struct {
	MessageID string `json:"message_id"`
	Namespace string `json:"namespace,omitempty"`
	Title     string `json:"title"` // without blanks at its ends; "": none
}

// ReleaseMessageRequest is the body of POST /v1/messages/{id}/release, which cancels all recorded sends of a message.
type ReleaseMessageRequest struct {
	Channel string `json:"channel,omitempty"` // "": all
}

// ReleasedMessage is the response to POST /v1/messages/{id}/release, which cancels all recorded sends of a message.
// ReleasedMessage counts the recorded sends in the audit (record of decisions) by the result of the release.
type ReleasedMessage struct {
	MessageID   string `json:"message_id"`
	Channel     string `json:"channel,omitempty"`
	Found       int64  `json:"found"`       // users with recorded sends in the audit
	Released    int64  `json:"released"`    // number of sends released by this call
	Absent      int64  `json:"absent"`      // released before, or no longer stored
	Unavailable int64  `json:"unavailable"` // unknown result: call again
	// Missing counts recorded sends that the audit does not contain yet, such as recent sends of other instances. If
	// Missing is above 0, the caller should repeat the call. If Missing is 0, all sends are released.
	Missing int64 `json:"missing"`
	// AtLeast means that Missing is computed from lower bounds (see Message), so Missing may be too small or too large.
	// If AtLeast is left out, Missing is exact.
	AtLeast bool `json:"at_least,omitempty"`
}

// AuditStatus is the state of the audit (record of decisions) of an instance.
type AuditStatus struct {
	To string `json:"to"`
	// "ok", "behind" (records wait for the upload) or "losing" (records are lost)
	State         string    `json:"state"`
	Error         string    `json:"error,omitempty"` // the last error, while the state is not ok
	Records       uint64    `json:"records"`         // since the start
	Lost          uint64    `json:"lost"`            // since the start
	WaitingBytes  int64     `json:"waiting_bytes"`   // bytes written locally and not uploaded yet
	WaitingFiles  int       `json:"waiting_files"`
	FlushedAt     time.Time `json:"flushed_at,omitzero"`  // all earlier records are on the disk
	UploadedAt    time.Time `json:"uploaded_at,omitzero"` // time of the last upload
	BehindSeconds float64   `json:"behind_seconds"`       // age of the oldest record that is not on the disk
}
