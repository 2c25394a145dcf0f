package api

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

// PermitsRequest is the body of POST /v1/permits, which requests permits to start sends from pacers (rate limiters).
type PermitsRequest struct {
	Pacers  []string `json:"pacers"`             // 1 to MaxPacers configured pacers, each once
	Permits int      `json:"permits"`            // 0 to MaxPermits; 0 only reads the state
	MaxWait Wait     `json:"max_wait,omitempty"` // 0 to MaxWait; 0: only permits without a wait
	// 1 to MaxRequestID bytes: a repeated id returns the same grant; "": none
	RequestID string `json:"request_id,omitempty"`
	MessageID string `json:"message_id,omitempty"` // 1 to MaxMessageID bytes; required by pacers with a log per message
	Key       string `json:"key,omitempty"`        // 1 to MaxPacerKey bytes; required by pacers with a log per key
	Share     string `json:"share,omitempty"`      // share of one of the Pacers; "": the API key's own share, if any
	// MinLease to MaxLease: the service takes back the permits with future slots unless the client repeats the call
	// within this time. A Lease requires a RequestID. 0: the service never takes the permits back
	Lease Wait `json:"lease,omitempty"`
}

// MaxPacers and the constants below bound the fields of a PermitsRequest. MaxRequestID and MaxPacerKey are lengths in
// bytes.
const (
	MaxPacers    = 8
	MaxPermits   = 100_000
	MaxRequestID = 128
	MaxPacerKey  = 128
	MaxWait      = 24 * time.Hour
	MinLease     = time.Second
	MaxLease     = time.Hour
)

// The type Wait is a duration in the text form of Go, such as "2s".
type Wait time.Duration

// MarshalText encodes the wait in the format of time.Duration.
func (w Wait) MarshalText() ([]byte, error) { return []byte(time.Duration(w).String()), nil }

// UnmarshalText decodes every format that time.ParseDuration accepts.
func (w *Wait) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*w = Wait(d)
	return err
}

// The type Permits is the response to POST /v1/permits: the granted permits with the times from which they may be used.
type Permits struct {
	Granted   int        `json:"granted"`
	Slots     []Slot     `json:"slots"` // slots (start times) of the Granted permits, the earliest first
	Replayed  bool       `json:"replayed,omitempty"`
	Refused   int        `json:"refused"`
	LimitedBy *LimitedBy `json:"limited_by,omitempty"` // the reason for Refused permits; nil when none is refused
	// time until the next permit's slot; nil when none is refused
	RetryAfterMS *Millis      `json:"retry_after_ms,omitempty"`
	Pacers       []PacerState `json:"pacers"` // state after the grant, in the order of the request
}

// UsableFor returns the time for which a permit may be used, counted from its slot (start time). The result is one
// second, or the shortest window of a pacer in the response if that window is shorter. The client must drop a permit
// that is older than UsableFor, because other senders may have received permits in the meantime.
func (p *Permits) UsableFor() time.Duration {
	usable := time.Second
	for i := range p.Pacers {
		if window, err := time.ParseDuration(p.Pacers[i].Window); err == nil && window > 0 {
			usable = min(usable, window)
		}
	}
	return usable
}

// The type Slot is a series of permits at equal intervals. A sender may use the first permit of a Slot after WaitMS
// milliseconds, and each further permit EveryMS milliseconds after the previous one. The wait for a permit counts from
// the moment when the client reads the response, so that no send starts too early. The age of a permit begins at the
// moment when the client sent the call.
type Slot struct {
	WaitMS  Millis `json:"wait_ms"`
	EveryMS Millis `json:"every_ms,omitempty"` // 0: all permits have the same slot
	Permits int    `json:"permits"`
}

// LimitedBy names the pacer and the limit that delay the next permit.
type LimitedBy struct {
	Pacer string `json:"pacer"`
	// Limit is the window of the limit, such as "1m", or a special value. "rate": the rate. "queue": later slots are
	// already granted. "share": the free permits are reserved for other shares, or the call's own share is used up.
	Limit string `json:"limit"`
	// TooEarly means that the slot is within the max_wait of the call and of its pacers. The slot stays free for calls
	// of a share, or for calls with a shorter wait, until the slot is near. A later call may get the slot.
	TooEarly bool `json:"too_early,omitempty"`
}

// LimitRate, LimitQueue and LimitShare are special values of the field LimitedBy.Limit. If LimitedBy.Limit is none of
// "rate", "queue" and "share", it is the window of the limit that delays the next permit.
const (
	LimitRate  = "rate"
	LimitQueue = "queue"
	LimitShare = "share"
)

// PacerState describes a pacer (rate limiter for sends): the number of permits in use, and the wait for a new permit.
type PacerState struct {
	Name      string `json:"name"`
	Per       string `json:"per,omitempty"`        // PerMessage, PerKey, or "": one log
	MessageID string `json:"message_id,omitempty"` // for a pacer per message: the message of the log
	Key       string `json:"key,omitempty"`        // for a pacer per key: the key of the log
	QueueMS   Millis `json:"queue_ms"`             // time until the latest granted slot; 0: the slot has passed
	NextMS    Millis `json:"next_ms"`              // time until the next free slot, for this pacer alone
	// Unavailable is true if the store could not read the pacer's grants. The response then contains no used slots, and
	// both times are 0.
	Unavailable bool `json:"unavailable,omitempty"`
	// used slots of the fullest limit, with its Max and Window; nil without limits
	Used   *int   `json:"used,omitempty"`
	Max    int    `json:"max,omitempty"`
	Window string `json:"window,omitempty"`
	// The fields Rate (as configured) and Limits are only in responses about pacers, and in responses to calls for 0
	// permits.
	Rate    string          `json:"rate,omitempty"`
	MaxWait string          `json:"max_wait,omitempty"` // longest wait of a grant; only in responses about pacers
	Limits  []PacerLimitUse `json:"limits,omitempty"`   // all limits
	Shares  []PacerShare    `json:"shares,omitempty"`   // as configured; only in responses about pacers
	Group   string          `json:"group,omitempty"`    // as configured; only in responses about pacers
}

// PerMessage and PerKey are values of PacerState.Per, for pacers that count permits separately for each message or key.
const (
	PerMessage = "message"
	PerKey     = "key"
)

// PacerLimitUse describes a limit of a pacer, and the number of permits within the limit that are in use.
type PacerLimitUse struct {
	// slots within the last window, and future slots; nil for a pacer with a log for each message or key
	Used   *int   `json:"used,omitempty"`
	Max    int    `json:"max"`
	Window string `json:"window"`
}

// PacerShare is a percentage of a pacer's permits that is reserved for calls that name the share.
type PacerShare struct {
	Name    string `json:"name"`
	Percent int    `json:"percent"`
}

// The type Pacers is the response to GET /v1/pacers.
type Pacers struct {
	Pacers        []PacerState `json:"pacers"`
	ConfigVersion string       `json:"config_version"`
}

// Millis is a duration in milliseconds, encoded as a number with up to three decimals.
type Millis time.Duration

// MarshalJSON encodes the duration as a number such as 4, 0.25 or 1004.001.
func (m Millis) MarshalJSON() ([]byte, error) {
	micros := time.Duration(m).Microseconds()
	return strconv.AppendFloat(nil, float64(micros)/1000, 'f', -1, 64), nil
}

// UnmarshalJSON decodes any number of milliseconds and rounds it to the microsecond.
func (m *Millis) UnmarshalJSON(text []byte) error {
	var ms float64
	if err := json.Unmarshal(text, &ms); err != nil {
		return err
	}
	if math.Abs(ms) > float64(math.MaxInt64/int64(time.Millisecond)) {
		return fmt.Errorf("duration must be at most 292 years, got %s milliseconds", text)
	}
	*m = Millis(time.Duration(math.Round(ms*1000)) * time.Microsecond)
	return nil
}
