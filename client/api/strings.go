package api

import (
	"encoding/json"
	"time"
)

// A request may name users by strings: uint64, uuid or text ids, or the digits of dense ids. FilterStrings and the
// other types of this file are the responses to requests that name users by strings. Each of these types has the same
// JSON fields as its counterpart for numeric ids, but with canonical strings as ids.

// FilterStrings has the fields of FilterIDs, with ids as strings.
type FilterStrings struct {
	Allowed     []string      `json:"allowed"`
	Replayed    []string      `json:"replayed"`
	Denied      []DenialOfID  `json:"denied,omitzero"` // nil with DetailCounts
	Unavailable []string      `json:"unavailable"`
	Waves       []WaveStrings `json:"waves,omitzero"` // nil unless requested
	// Audience, in the response to a call with an audience, describes its users and has the cursor of the next call.
	Audience      *AudienceTaken `json:"audience,omitempty"`
	Summary       Summary        `json:"summary"`
	Generation    string         `json:"generation"`
	ConfigVersion string         `json:"config_version"`
}

// DenialOfID has the fields of Denial, with the id as a string.
type DenialOfID struct {
	UserID   string     `json:"user_id"`
	Segment  string     `json:"segment"`
	Limit    string     `json:"limit"`
	Set      string     `json:"set,omitempty"`
	Max      int        `json:"max"`
	Timezone string     `json:"timezone,omitempty"`
	RetryAt  *time.Time `json:"retry_at"`
}

// MarshalJSON writes RetryAt with milliseconds.
func (d DenialOfID) MarshalJSON() ([]byte, error) {
	type plain DenialOfID
	return json.Marshal(struct {
		plain
		RetryAt *instant `json:"retry_at"`
	}{plain(d), (*instant)(d.RetryAt)})
}

// WaveStrings has the fields of WaveIDs, with ids as strings.
type WaveStrings struct {
	From    time.Time `json:"from"`
	ReadyAt time.Time `json:"ready_at"`
	UserIDs []string  `json:"user_ids"`
}

// MarshalJSON writes ReadyAt with milliseconds.
func (w WaveStrings) MarshalJSON() ([]byte, error) {
	type plain WaveStrings
	return json.Marshal(struct {
		plain
		ReadyAt instant `json:"ready_at"`
	}{plain(w), instant(w.ReadyAt)})
}

// ReleaseStrings has the fields of ReleaseIDs, with ids as strings.
type ReleaseStrings struct {
	Released    []string       `json:"released"`
	Unavailable []string       `json:"unavailable"`
	Audience    *AudienceTaken `json:"audience,omitempty"`
	Summary     ReleaseSummary `json:"summary"`
}

// LookupStrings has the fields of LookupIDs, with ids as strings.
type LookupStrings struct {
	Generation string           `json:"generation"`
	Users      []UserLookupOfID `json:"users"`
	Audience   *AudienceTaken   `json:"audience,omitempty"`
}

// UserLookupOfID has the fields of UserLookup, with the id as a string.
type UserLookupOfID struct {
	UserID  string   `json:"user_id"`
	Segment string   `json:"segment"`
	Sets    []string `json:"sets"`
}

// ExplanationOfID has the fields of Explanation, with the id as a string, for a deployment whose ids are not dense
// 32-bit numbers.
type ExplanationOfID struct {
	UserID string `json:"user_id"`
	Explanation
}

// ImportRequestStrings has the fields of ImportRequest, with ids as strings.
type ImportRequestStrings struct {
	MessageID string             `json:"message_id,omitempty"`
	Channel   string             `json:"channel,omitempty"`
	Sends     []ImportedSendOfID `json:"sends"`
}

// ImportedSendOfID has the fields of ImportedSend, with the id as a string.
type ImportedSendOfID struct {
	UserID    string    `json:"user_id,omitempty"`
	Image     string    `json:"image,omitempty"` // in place of an unknown id: the image of the id, 16 hexadecimal digits
	At        time.Time `json:"at"`
	Channel   string    `json:"channel,omitempty"`
	MessageID string    `json:"message_id,omitempty"`
}

// ImportAnswerStrings has the fields of ImportAnswer, with ids as strings.
type ImportAnswerStrings struct {
	Unavailable []string      `json:"unavailable"` // ids, or "image:" with the image of an unknown id
	Summary     ImportSummary `json:"summary"`
}

// SendsCheckStrings has the fields of SendsCheck, with ids as strings.
type SendsCheckStrings struct {
	Missing     []MissingStrings  `json:"missing"`
	Unavailable []string          `json:"unavailable"`
	Time        time.Time         `json:"time"`
	Summary     SendsCheckSummary `json:"summary"`
}

// MissingStrings has the fields of MissingSends, with ids as strings.
type MissingStrings struct {
	Partition *int     `json:"partition,omitempty"`
	Node      string   `json:"node,omitempty"`
	UserIDs   []string `json:"user_ids"`
}

// DecisionsOfID has the fields of Decisions, with the id as a string.
type DecisionsOfID struct {
	UserID    string     `json:"user_id"`
	Since     time.Time  `json:"since"`
	More      bool       `json:"more"`
	Faults    []string   `json:"faults,omitempty"`
	Decisions []Decision `json:"decisions"`
}

// DecidedIDs lists the users about whom the service has decided, by result, in a deployment whose ids are not dense
// 32-bit numbers. If the generation (published version) in use lacks an id, the list has "image:" and 16 hexadecimal
// digits instead: the id's image (64-bit hash). No user is in two lists of a DecidedIDs.
type DecidedIDs struct {
	MessageID string `json:"message_id"`
	Namespace string `json:"namespace,omitempty"`
	Channel   string `json:"channel"`

	Allowed     []string            `json:"allowed"` // users with a recorded send
	Denied      map[string][]string `json:"denied"`  // by limit, or LimitSuppressed, LimitHoldout, LimitQuiet
	Released    []string            `json:"released"`
	Unavailable []string            `json:"unavailable"`
	// unreadable files, whose decisions are missing
	Faults []string `json:"faults,omitempty"`
}
