package api

import (
	"encoding/json"
	"time"
)

// Explanation is the answer of GET /v1/users/{id}: why a user is allowed or
// denied.
type Explanation struct {
	UserID        uint32     `json:"user_id"`
	Segment       string     `json:"segment"` // NoSegment for users in none
	Generation    string     `json:"generation"`
	ConfigVersion string     `json:"config_version"`
	Limits        []Standing `json:"limits"`
	Sends         []Send     `json:"sends"` // oldest first
}

// Standing is how a user stands with a limit.
type Standing struct {
	Limit
	Used    int        `json:"used"`
	RetryAt *time.Time `json:"retry_at"` // nil: a slot is free now, or Max is 0
}

// MarshalJSON writes RetryAt with milliseconds.
func (s Standing) MarshalJSON() ([]byte, error) {
	type plain Standing
	return json.Marshal(struct {
		plain
		RetryAt *instant `json:"retry_at"`
	}{plain(s), (*instant)(s.RetryAt)})
}

// Send is a recorded send.
type Send struct {
	At        time.Time `json:"at"`
	Channel   *string   `json:"channel"`    // nil: sent without one
	Namespace *string   `json:"namespace"`  // nil: not remembered; "": of keys without one
	MessageID *string   `json:"message_id"` // nil: not remembered
}

// MarshalJSON writes At with milliseconds.
func (s Send) MarshalJSON() ([]byte, error) {
	type plain Send
	return json.Marshal(struct {
		At instant `json:"at"`
		plain
	}{instant(s.At), plain(s)})
}
