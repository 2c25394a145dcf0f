package api

import (
	"encoding/json"
	"time"
)

// FilterRequest is the body of POST /v1/filter, which asks who may receive a message. A FilterRequest names its users
// in exactly one of the fields UserIDs, UsersBitmap, UsersPacked and Audience.
type FilterRequest struct {
	MessageID   string   `json:"message_id,omitempty"` // 1 to MaxMessageID bytes; optional when Record is false
	Channel     string   `json:"channel,omitempty"`    // a configured one; "": none
	UserIDs     []uint32 `json:"user_ids,omitempty"`
	UsersBitmap *Bitmap  `json:"users_bitmap,omitempty"` // the response has bitmaps too
	UsersPacked []byte   `json:"users_packed,omitempty"` // packed ids; the response is a FilterPositions
	AudienceQuery
	// nil: true. false: nobody is denied, but the send is recorded
	Enforce *bool      `json:"enforce,omitempty"`
	Record  *bool      `json:"record,omitempty"` // nil: true. false: only decide, record nothing
	Detail  string     `json:"detail,omitempty"` // DetailDenials, which "" stands for, or DetailCounts
	Waves   bool       `json:"waves,omitempty"`  // also group the denied users by the hour of their RetryAt
	At      *time.Time `json:"at,omitempty"`     // with Record false: the time for which to decide; nil: now
}

// DetailDenials and DetailCounts are the values of FilterRequest.Detail, which selects how the response describes
// denied users.
const (
	DetailDenials = "denials" // list each denied user
	DetailCounts  = "counts"  // only count denied users, in the summary
)

// FilterIDs is the response to a filter call with the field user_ids.
type FilterIDs struct {
	Allowed []uint32 `json:"allowed"` // users who may receive the send, in the order of the request, each once
	// allowed users whose send an earlier call with the message id had recorded
	Replayed      []uint32  `json:"replayed"`
	Denied        []Denial  `json:"denied,omitzero"` // nil with DetailCounts
	Unavailable   []uint32  `json:"unavailable"`     // undecided users: retry with the same message id
	Waves         []WaveIDs `json:"waves,omitzero"`  // nil unless requested
	Summary       Summary   `json:"summary"`
	Generation    string    `json:"generation"`     // generation of the segments
	ConfigVersion string    `json:"config_version"` // configuration version that the decisions used
}

// FilterBitmaps is the response to a filter call with the field users_bitmap or audience.
type FilterBitmaps struct {
	AllowedBitmap  Bitmap `json:"allowed_bitmap"`
	ReplayedBitmap Bitmap `json:"replayed_bitmap"`
	// by the name of the limit; nil with DetailCounts
	DeniedBitmaps     map[string]Bitmap `json:"denied_bitmaps,omitzero"`
	UnavailableBitmap Bitmap            `json:"unavailable_bitmap"`
	Waves             []WaveBitmap      `json:"waves,omitzero"` // nil unless requested
	// for a call with audience: its users, and the cursor of the next call
	Audience      *AudienceTaken `json:"audience,omitempty"`
	Summary       Summary        `json:"summary"`
	Generation    string         `json:"generation"`
	ConfigVersion string         `json:"config_version"`
}

// FilterPositions is the response to a filter call with the field users_packed. The bitmaps of FilterPositions hold
// positions of ids in users_packed, counted from 0. If an id occurs repeatedly in users_packed, the bitmaps of
// FilterPositions hold the position of its first occurrence.
type FilterPositions struct {
	AllowedPositions  Bitmap `json:"allowed_positions"`
	ReplayedPositions Bitmap `json:"replayed_positions"`
	// by the name of the limit; nil with DetailCounts
	DeniedPositions      map[string]Bitmap `json:"denied_positions,omitzero"`
	UnavailablePositions Bitmap            `json:"unavailable_positions"`
	Waves                []WavePositions   `json:"waves,omitzero"` // nil unless requested
	Summary              Summary           `json:"summary"`
	Generation           string            `json:"generation"`
	ConfigVersion        string            `json:"config_version"`
}

// FilterPacked is the response to a filter call with the field audience, in a deployment whose ids are UUIDs or uint64.
// FilterPacked holds ids in packed form: 16 bytes of a UUID, or 8 bytes of a uint64 id, big endian.
type FilterPacked struct {
	AllowedPacked  []byte `json:"allowed_packed"`
	ReplayedPacked []byte `json:"replayed_packed"`
	// by the name of the limit; nil with DetailCounts
	DeniedPacked      map[string][]byte `json:"denied_packed,omitzero"`
	UnavailablePacked []byte            `json:"unavailable_packed"`
	Waves             []WavePacked      `json:"waves,omitzero"` // nil unless requested
	Audience          *AudienceTaken    `json:"audience,omitempty"`
	Summary           Summary           `json:"summary"`
	Generation        string            `json:"generation"`
	ConfigVersion     string            `json:"config_version"`
}

// Denial describes a denied user, who must not receive the send.
type Denial struct {
	UserID  uint32 `json:"user_id"`
	Segment string `json:"segment"` // NoSegment for users without a segment
	// the limit that allows a send again last, or LimitSuppressed, LimitHoldout, LimitQuiet
	Limit string `json:"limit"`
	Set   string `json:"set,omitempty"` // with LimitSuppressed: the set that contains the user
	Max   int    `json:"max"`           // 0 when no limit of the policy denies
	// with LimitQuiet, and with limits in the user's time zone: the time zone that applied
	Timezone string `json:"timezone,omitempty"`
	// RetryAt, for a limit, is the earliest known time outside quiet hours at which all limits of the user allow a
	// send. For LimitQuiet, RetryAt is the end of the quiet hours, regardless of the limits. nil: no limit will ever
	// allow the send.
	RetryAt *time.Time `json:"retry_at"`
}

// LimitSuppressed, LimitHoldout and LimitQuiet name the rules other than limits that deny sends to users. If a rule
// other than a limit denied a send, the field Limit of the Denial is "suppressed", "holdout" or "quiet". The maps that
// count denied users by limit have the values of the field Limit as keys.
const (
	LimitSuppressed = "suppressed" // the user is in a suppressed set
	LimitHoldout    = "holdout"    // the user belongs to the control group, which receives nothing
	LimitQuiet      = "quiet"      // quiet hours apply in the user's time zone
)

// MarshalJSON writes RetryAt with milliseconds.
func (d Denial) MarshalJSON() ([]byte, error) {
	type plain Denial
	return json.Marshal(struct {
		plain
		RetryAt *instant `json:"retry_at"`
	}{plain(d), (*instant)(d.RetryAt)})
}

// NoSegment is the name that responses and metrics use for users without a segment. The policy's default limits apply
// to users without a segment. No segment should have the name "default", because responses would count its users
// together with users without a segment.
const NoSegment = "default"

// WaveIDs is a group of denied users whose RetryAt is within the same hour, so that a caller can retry them together.
type WaveIDs struct {
	From    time.Time `json:"from"`     // start of the hour
	ReadyAt time.Time `json:"ready_at"` // the latest RetryAt, after which all of them may be retried
	UserIDs []uint32  `json:"user_ids"`
}

// MarshalJSON writes ReadyAt with milliseconds.
func (w WaveIDs) MarshalJSON() ([]byte, error) {
	type plain WaveIDs
	return json.Marshal(struct {
		plain
		ReadyAt instant `json:"ready_at"`
	}{plain(w), instant(w.ReadyAt)})
}

// WaveBitmap is a group of denied users whose RetryAt is within the same hour, as a bitmap.
type WaveBitmap struct {
	From        time.Time `json:"from"`
	ReadyAt     time.Time `json:"ready_at"`
	UsersBitmap Bitmap    `json:"users_bitmap"`
}

// MarshalJSON writes ReadyAt with milliseconds.
func (w WaveBitmap) MarshalJSON() ([]byte, error) {
	type plain WaveBitmap
	return json.Marshal(struct {
		plain
		ReadyAt instant `json:"ready_at"`
	}{plain(w), instant(w.ReadyAt)})
}

// WavePacked is a group of denied users whose RetryAt is within the same hour, as packed ids.
type WavePacked struct {
	From        time.Time `json:"from"`
	ReadyAt     time.Time `json:"ready_at"`
	UsersPacked []byte    `json:"users_packed"`
}

// MarshalJSON writes ReadyAt with milliseconds.
func (w WavePacked) MarshalJSON() ([]byte, error) {
	type plain WavePacked
	return json.Marshal(struct {
		plain
		ReadyAt instant `json:"ready_at"`
	}{plain(w), instant(w.ReadyAt)})
}

// WavePositions is a group of denied users whose RetryAt is within the same hour, as positions in the request.
type WavePositions struct {
	From      time.Time `json:"from"`
	ReadyAt   time.Time `json:"ready_at"`
	Positions Bitmap    `json:"positions"`
}

// MarshalJSON writes ReadyAt with milliseconds.
func (w WavePositions) MarshalJSON() ([]byte, error) {
	type plain WavePositions
	return json.Marshal(struct {
		plain
		ReadyAt instant `json:"ready_at"`
	}{plain(w), instant(w.ReadyAt)})
}

// Summary counts the users of a filter call, by decision and by segment.
type Summary struct {
	Requested   int                       `json:"requested"` // includes Duplicates
	Allowed     int                       `json:"allowed"`   // includes Replayed
	Denied      map[string]int            `json:"denied"`    // by the name of the limit
	Unavailable int                       `json:"unavailable"`
	Duplicates  int                       `json:"duplicates"`
	Replayed    int                       `json:"replayed"`
	Segments    map[string]SegmentSummary `json:"segments"` // NoSegment for users without a segment

	Suppressed map[string]int `json:"suppressed,omitempty"` // users denied by LimitSuppressed, by set
	// allowed users that each shadow limit would have denied
	ShadowDenied map[string]int `json:"shadow_denied,omitempty"`
}

// SegmentSummary counts those users of a filter call who are in one segment.
type SegmentSummary struct {
	Requested int `json:"requested"`
	Allowed   int `json:"allowed"`
}

// The method Add adds the counts in the summary of another filter call to the receiver s.
func (s *Summary) Add(batch *Summary) {
	s.Requested += batch.Requested
	s.Allowed += batch.Allowed
	s.Unavailable += batch.Unavailable
	s.Duplicates += batch.Duplicates
	s.Replayed += batch.Replayed
	if s.Denied == nil {
		s.Denied = map[string]int{}
	}
	if s.Segments == nil {
		s.Segments = map[string]SegmentSummary{}
	}
	addCounts(&s.Suppressed, batch.Suppressed)
	addCounts(&s.ShadowDenied, batch.ShadowDenied)
	for limit, users := range batch.Denied {
		s.Denied[limit] += users
	}
	for segment, counts := range batch.Segments {
		row := s.Segments[segment]
		row.Requested += counts.Requested
		row.Allowed += counts.Allowed
		s.Segments[segment] = row
	}
}

// addCounts adds the counts in the map "more" to the map "sum", name by name. If the map "sum" is nil, addCounts
// creates it only for at least one count.
func addCounts(sum *map[string]int, more map[string]int) {
	for name, users := range more {
		if *sum == nil {
			*sum = map[string]int{}
		}
		(*sum)[name] += users
	}
}
