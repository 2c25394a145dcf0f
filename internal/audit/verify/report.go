package verify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"capper/internal/capping"
)

// These constants are the kinds of findings (faults of the audit or violated limits) that a verification reports.
const (
	Damage    = "damage"       // an object whose bytes differ from those that were written
	Missing   = "missing"      // an indexed file is missing, or a number in a series of files
	Unindexed = "not_in_index" // a file that no index entry names
	Stranger  = "stranger"     // an object that does not belong to an audit
	Disagrees = "disagrees"    // an index entry that differs from its file
	Gap       = "gap"          // missing records between other records
	Loss      = "loss"         // records that an instance noted as lost
	NoPolicy  = "no_policy"    // a configuration version without its policy
	OverSend  = "over_send"    // a send that a limit forbade

	NotInStore = "not_in_store" // a send that the store lacks
)

// Kinds lists the kinds of findings that a verification can report.
func Kinds() []string {
	return []string{Damage, Missing, Unindexed, Stranger, Disagrees, Gap, Loss, NoPolicy, OverSend, NotInStore}
}

// A Finding is one fault in the audit, or one send that a limit forbade.
type Finding struct {
	Kind string `json:"kind"`
	Key  string `json:"key,omitempty"` // the object
	Text string `json:"text"`

	Instance string    `json:"instance,omitempty"`
	Sequence uint64    `json:"sequence,omitempty"`
	Records  uint64    `json:"records,omitempty"` // that are missing
	At       time.Time `json:"at,omitzero"`

	User      *User  `json:"user_id,omitempty"` // user of a send; all fields below belong to the send
	Message   string `json:"message_id,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Channel   string `json:"channel,omitempty"`
	Limit     string `json:"limit,omitempty"`
	Place     string `json:"place,omitempty"` // place of a send that the store lacks
}

// User is the user whom a finding concerns. In JSON, a User with a dense id (32-bit number) is a number, and every
// other User is a text.
type User struct {
	ID   capping.UserID
	Name string // "": the id is dense
}

// String returns the text of a User: the dense id (32-bit number) or the name.
func (u *User) String() string {
	if u.Name == "" {
		return strconv.FormatUint(uint64(u.ID), 10)
	}
	return u.Name
}

// MarshalJSON encodes a User as a dense id (32-bit number) or as a name (text).
func (u *User) MarshalJSON() ([]byte, error) {
	if u.Name == "" {
		return json.Marshal(u.ID)
	}
	return json.Marshal(u.Name)
}

// UnmarshalJSON decodes a user that MarshalJSON encoded.
func (u *User) UnmarshalJSON(raw []byte) error {
	*u = User{}
	if bytes.HasPrefix(raw, []byte{'"'}) {
		return json.Unmarshal(raw, &u.Name)
	}
	return json.Unmarshal(raw, &u.ID)
}

// The method "named" returns the user of a finding. If ids are not dense 32-bit numbers, a finding contains a name of
// the user instead of a number.
func (s *work) named(user capping.UserID) *User {
	u := &User{ID: user}
	if !s.archive.IDs().Dense() {
		u.Name = s.config.Name(user)
	}
	return u
}

// A Report holds the numbers of checked objects, and lists the findings.
type Report struct {
	Files    int   `json:"files"`
	Open     int   `json:"open_files"`
	Bytes    int64 `json:"size_bytes"`
	Records  int64 `json:"records"`
	Sends    int64 `json:"sends"`
	Unjudged int64 `json:"sends_not_judged"` // sends whose limits are unknown: see Notes
	Erased   int   `json:"erased_users"`
	Accepted int   `json:"accepted_over_sends"` // over-sends until Config.AcceptedUntil; no findings

	Findings []Finding      `json:"findings"` // at most MaxListed of a kind
	Found    map[string]int `json:"found"`    // all, by kind
	Notes    []string       `json:"notes"`    // remarks that are no findings

	Store *StoreReport `json:"store,omitempty"`

	noted map[string]bool
}

// MaxListed is the maximum number of findings of one kind that a report lists.
const MaxListed = 1000

// Healthy reports whether the verification has no findings.
func (r *Report) Healthy() bool { return len(r.Found) == 0 }

func (r *Report) find(f Finding) {
	if r.Found == nil {
		r.Found = map[string]int{}
	}
	if r.Found[f.Kind]++; r.Found[f.Kind] <= MaxListed {
		r.Findings = append(r.Findings, f)
	}
}

// The method note adds a note to the report, unless the report already has this note.
func (r *Report) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if r.noted == nil {
		r.noted = map[string]bool{}
	}
	if !r.noted[text] {
		r.noted[text] = true
		r.Notes = append(r.Notes, text)
	}
}

// The method missing adds a note about an unreadable segments generation (published version) to the report.
func (r *Report) missing(generation string, err error) {
	r.note("generation %s cannot be read, so sends that used its segments are not checked (use --generation to name "+
		"another one for all): %v", generation, err)
}
