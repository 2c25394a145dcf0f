package api

import (
	"encoding/json"
	"time"
)

// AudienceQuery selects the users of an API call by an expression over segments and sets, in place of user_ids or
// users_bitmap. If the AudienceQuery of a request is the zero value, the request names its users in another field.
type AudienceQuery struct {
	// Audience combines names of segments and sets with & (both), | (either), - (the first without the second; a blank
	// must precede it) and parentheses. The operator & binds first; the operators | and - are evaluated from left to
	// right. The name "all" means every user in any segment or set, and "default" is every such user without a segment.
	Audience string  `json:"audience,omitempty"`
	Sample   *Sample `json:"sample,omitempty"` // only a share of the users
	Part     *Part   `json:"part,omitempty"`   // only one of several parts of about the same size
	// MaxUsers is the maximum number of users of this API call; 0: all users. The service selects the users with the
	// lowest ids, or with the lowest id images (64-bit hashes) if ids are not dense. AudienceTaken.Next selects the
	// users that follow. If MaxUsers is 0 and the audience has more users than a call allows, the response is an error.
	MaxUsers int `json:"max_users,omitempty"`
	// Cursor is the AudienceTaken.Next of the previous response. All other fields of the query must be unchanged.
	Cursor string `json:"cursor,omitempty"`
	// Generation names the segments generation (published version) in which the service looks up the segments and sets.
	// "": the generation of the cursor, or the current generation if there is no cursor.
	Generation string `json:"generation,omitempty"`
}

// The type Sample selects a fixed percentage of the users, chosen by a hash of their ids; docs/audiences.md describes
// samples. A Sample has either Percent, or From and To. From and To are percentages. Two Samples with the same salt and
// disjoint ranges have no common user.
type Sample struct {
	Percent float64 `json:"percent,omitempty"` // above 0, at most 100; equals the range from 0 to Percent
	From    float64 `json:"from,omitempty"`    // in percent, from 0, below To
	To      float64 `json:"to,omitempty"`      // in percent, at most 100
	Salt    string  `json:"salt"`              // a different salt selects a different sample
}

// The type Part is one of several disjoint parts of equal size that together form an audience.
type Part struct {
	Of    int `json:"of"`    // 1 to MaxParts
	Index int `json:"index"` // from 0
}

// MaxParts is the maximum number of parts into which an audience can be divided.
const MaxParts = 10_000

// AudienceTaken describes, in a response, the users whom the audience expression of the request selected.
type AudienceTaken struct {
	// Generation is the segments generation that the service used. An instance keeps the generation for an hour after
	// the last call to this instance that used it.
	Generation string `json:"generation"`
	Users      int    `json:"users"`               // number of users of this call
	Next       string `json:"next,omitempty"`      // cursor of the users that follow; "": there are none
	NextPart   *Part  `json:"next_part,omitempty"` // the next part; nil: this part is the last
}

// AudienceCountRequest is the body of POST /v1/audience/count.
type AudienceCountRequest struct {
	AudienceQuery
	// also return the number of users who could receive a send on the channel now; "": a send without a channel
	Channel *string `json:"channel,omitempty"`
	Detail  string  `json:"detail,omitempty"` // DetailSets, the default, or DetailTotal
}

// DetailSets and DetailTotal are the values of AudienceCountRequest.Detail, which selects the details of the response.
const (
	DetailSets  = "sets"  // the total, and the numbers by segment and by set
	DetailTotal = "total" // only the total: Segments and Sets of the response are empty
)

// AudienceCount is the response to POST /v1/audience/count.
type AudienceCount struct {
	Generation string `json:"generation"`
	// Expression is the audience expression in which each name from the configuration is replaced by its definition. A
	// caller who requests parts with this Expression gets the same users, even after a reload of the configuration. "":
	// the audience contains no such name, or the result would be too long for a call.
	Expression string            `json:"expression,omitempty"`
	Users      uint64            `json:"users"`
	Segments   map[string]uint64 `json:"segments"` // without segments that have none of the users; NoSegment for users without a segment
	Sets       map[string]uint64 `json:"sets"`     // without sets that have none of the users
	// If the request has a channel, Preview is the summary that a filter call would return now. The next two fields
	// name the generation and the configuration version that the decisions used.
	Preview           *Summary `json:"preview,omitempty"`
	PreviewGeneration string   `json:"preview_generation,omitempty"`
	ConfigVersion     string   `json:"config_version,omitempty"`
}

// MaxForecasts is the maximum number of times in a ForecastRequest.
const MaxForecasts = 64

// ForecastRequest is the body of POST /v1/forecast, which asks for the numbers of users who could receive a message at
// several times. A ForecastRequest names its users in exactly one of the fields UserIDs, UsersBitmap, UsersPacked and
// Audience.
type ForecastRequest struct {
	Channel     string   `json:"channel,omitempty"` // "": a send without a channel
	UserIDs     []uint32 `json:"user_ids,omitempty"`
	UsersBitmap *Bitmap  `json:"users_bitmap,omitempty"`
	UsersPacked []byte   `json:"users_packed,omitempty"`
	AudienceQuery
	At   []time.Time `json:"at,omitempty"`   // at most MaxForecasts; empty: now
	Used bool        `json:"used,omitempty"` // also count the users by their sends that count now, in Forecast.Used
}

// Forecast is the response to POST /v1/forecast: decisions that filter calls would return at several times.
type Forecast struct {
	Generation    string `json:"generation"`     // generation of the segments
	ConfigVersion string `json:"config_version"` // configuration version that the decisions used
	Users         int    `json:"users"`
	// for a call with audience: its users, and the cursor of the next call
	Audience  *AudienceTaken  `json:"audience,omitempty"`
	Forecasts []ForecastPoint `json:"forecasts"` // in the order of the times
	// for a request with Used: the limits of each segment with users of the call. Suppression, holdout, quiet hours and
	// shadow limits play no part
	Used []LimitUse `json:"used,omitempty"`
}

// For one limit, LimitUse groups the users of a segment by the number of their sends that count towards the limit now.
type LimitUse struct {
	Segment string    `json:"segment"` // NoSegment for users without a segment
	Limit   string    `json:"limit"`
	Max     int       `json:"max"`
	Steps   []UseStep `json:"steps"` // ascending, from 0 to Max; not every number has its own step
}

// UseStep counts the users who have at least Sends sends in the window of the limit. Users who have enough sends for
// the next UseStep count only there.
type UseStep struct {
	Sends int `json:"sends"`
	Users int `json:"users"`
}

// ForecastPoint holds the result that a filter call would return at the time At, if no message is sent before At.
type ForecastPoint struct {
	At      time.Time `json:"at"`
	Summary Summary   `json:"summary"`
}

// MarshalJSON writes At with milliseconds.
func (p ForecastPoint) MarshalJSON() ([]byte, error) {
	type plain ForecastPoint
	return json.Marshal(struct {
		At instant `json:"at"`
		plain
	}{instant(p.At), plain(p)})
}
