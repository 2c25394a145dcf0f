package api

import (
	"encoding/json"
	"time"
)

// Explanation is the response to GET /v1/users/{id}: the reasons why a user may or may not receive a message.
type Explanation struct {
	UserID        uint32     `json:"user_id"`
	Segment       string     `json:"segment"` // NoSegment for users without a segment
	Generation    string     `json:"generation"`
	ConfigVersion string     `json:"config_version"`
	Limits        []Standing `json:"limits"`
	Sends         []Send     `json:"sends"` // the oldest first

	// the user's time zone, or the configured default; "": no rule uses time zones of users
	Timezone   string        `json:"timezone,omitempty"`
	Suppressed []Suppression `json:"suppressed,omitempty"` // suppressions that apply to the user
	// Live lists the changes by API calls that determine whether the user is in a set. A change by an API call takes
	// precedence over the build.
	Live    []LiveMembership `json:"live,omitempty"`
	Holdout *Holdout         `json:"holdout,omitempty"` // set when the user belongs to the control group
	Quiet   []QuietStanding  `json:"quiet,omitempty"`   // quiet hours that apply to the user
	// channels for which quiet hours leave no open minute within a year
	NeverOpen       []string `json:"never_open,omitempty"`
	WouldBeDeniedBy []string `json:"would_be_denied_by,omitempty"` // shadow limits without a free slot
	// Missing lists sets that the configuration needs and the generation lacks. The other fields are computed as if the
	// user were in none of these sets. For sends that need a missing set, the service returns the user as unavailable.
	Missing []string `json:"missing,omitempty"`
	// TooOld lists suppressed sets that are older than their max_age. For sends that need a set in TooOld, the service
	// returns the user as unavailable.
	TooOld []string `json:"too_old,omitempty"`
}

// The type Standing describes the used part of a user's limit, and the time when the limit allows the next send.
type Standing struct {
	Limit
	Used    int        `json:"used"`
	RetryAt *time.Time `json:"retry_at"` // nil: a slot is free now, or Max is 0
}

// QuietStanding describes the effect of quiet hours on a user.
type QuietStanding struct {
	Quiet
	Now   bool       `json:"now"`   // the quiet hours apply now
	Until *time.Time `json:"until"` // with Now: the end of the quiet hours; otherwise nil
}

// MarshalJSON writes RetryAt with milliseconds.
func (s Standing) MarshalJSON() ([]byte, error) {
	type plain Standing
	return json.Marshal(struct {
		plain
		RetryAt *instant `json:"retry_at"`
	}{plain(s), (*instant)(s.RetryAt)})
}

// MarshalJSON writes Until with milliseconds.
func (s QuietStanding) MarshalJSON() ([]byte, error) {
	type plain QuietStanding
	return json.Marshal(struct {
		plain
		Until *instant `json:"until"`
	}{plain(s), (*instant)(s.Until)})
}

// The type Send is a recorded send.
type Send struct {
	At        time.Time `json:"at"`
	Channel   *string   `json:"channel"`         // nil: the send had no channel
	Namespace *string   `json:"namespace"`       // nil: not remembered; "": no namespace
	MessageID *string   `json:"message_id"`      // nil: the store no longer knows the id
	Title     string    `json:"title,omitempty"` // name of the message for people, if the store still counts the message
}

// MarshalJSON writes At with milliseconds.
func (s Send) MarshalJSON() ([]byte, error) {
	type plain Send
	return json.Marshal(struct {
		At instant `json:"at"`
		plain
	}{instant(s.At), plain(s)})
}

// The type Decisions is the response to GET /v1/users/{id}/decisions: the decisions about a user that the audit has
// recorded.
type Decisions struct {
	UserID uint32 `json:"user_id"`
	// start of the period that the service read; later than requested if More is true
	Since     time.Time  `json:"since"`
	More      bool       `json:"more"`             // older decisions are left out, because there are too many or the time limit was reached
	Faults    []string   `json:"faults,omitempty"` // unreadable files, whose decisions are missing
	Decisions []Decision `json:"decisions"`        // the oldest first
}

// Decision is the result of one filter call for a user.
type Decision struct {
	At        time.Time `json:"at"`      // start of the store call
	Kind      string    `json:"kind"`    // "filter", "release", "permits" or "set_change"
	Outcome   string    `json:"outcome"` // "allowed", "replayed", "denied", "unavailable", "released", "absent", "release_unavailable", "added", "removed" or "change_unavailable"
	MessageID string    `json:"message_id"`
	Namespace string    `json:"namespace,omitempty"`
	Title     string    `json:"title,omitempty"` // name of the message for people, if the store still counts the message
	Channel   string    `json:"channel"`         // "": none; of a release: all
	// for denied users: the name of the limit, or LimitSuppressed, LimitHoldout, LimitQuiet
	Limit         string `json:"limit,omitempty"`
	Set           string `json:"set,omitempty"` // with LimitSuppressed, and of a change of a set: the set
	Exempt        bool   `json:"exempt,omitempty"`
	Client        string `json:"client"`
	Key           string `json:"key,omitempty"`
	Generation    string `json:"generation"`
	ConfigVersion string `json:"config_version"`
}

// MarshalJSON writes At with milliseconds.
func (d Decision) MarshalJSON() ([]byte, error) {
	type plain Decision
	return json.Marshal(struct {
		At instant `json:"at"`
		plain
	}{instant(d.At), plain(d)})
}

// DecidedUsers is the response to GET /v1/decisions: the users of a message on a channel, grouped by their latest
// result in the audit (record of decisions). Each user is in only one bitmap of the response.
type DecidedUsers struct {
	MessageID string `json:"message_id"`
	Namespace string `json:"namespace,omitempty"`
	Channel   string `json:"channel"`

	AllowedBitmap Bitmap `json:"allowed_bitmap"` // users with a recorded send
	// by limit, or LimitSuppressed, LimitHoldout, LimitQuiet
	DeniedBitmaps     map[string]Bitmap `json:"denied_bitmaps"`
	ReleasedBitmap    Bitmap            `json:"released_bitmap"`
	UnavailableBitmap Bitmap            `json:"unavailable_bitmap"`
	// unreadable files, whose decisions are missing
	Faults []string `json:"faults,omitempty"`
}
