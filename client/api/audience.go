package api

import (
	"encoding/json"
	"time"
)

// AudienceQuery selects the users of a call by an expression over segments and sets, instead of user_ids or
// users_bitmap. The zero value selects nobody and means that another field gives the users.
type AudienceQuery struct {
	// Audience is names of segments and sets, & (both), | (either), - (the first without the
	// second, with a blank before it) and parentheses; & binds first, the others from
	// left to right. "all" is everybody in any segment or set, "default" those of them who are in no segment.
	Audience string  `json:"audience,omitempty"`
	Sample   *Sample `json:"sample,omitempty"` // only a share of them
	Part     *Part   `json:"part,omitempty"`   // only one of several parts of about the same size
	// MaxUsers is the most users of this call, the lowest ids first: AudienceTaken.Next leads to those
	// that follow. 0: all of them, which is an error where they are more than a call takes.
	MaxUsers int `json:"max_users,omitempty"`
	// Cursor is the AudienceTaken.Next of the call before. The rest of the query must be the same.
	Cursor string `json:"cursor,omitempty"`
	// Generation is the generation that the names are of. "": that of the cursor, else the one in use.
	Generation string `json:"generation,omitempty"`
}

// Sample selects a fixed share of the users; see the documentation of the API. It has either Percent, or From and To,
// which give a range on the salt's scale. Ranges that do not overlap share no user.
type Sample struct {
	Percent float64 `json:"percent,omitempty"` // above 0, at most 100; the same as the cell from 0 to Percent
	From    float64 `json:"from,omitempty"`    // in percent, from 0, below To
	To      float64 `json:"to,omitempty"`      // in percent, at most 100
	Salt    string  `json:"salt"`              // another salt is another sample
}

// Part is one of several disjoint parts that together form an audience.
type Part struct {
	Of    int `json:"of"`    // 1 to MaxParts
	Index int `json:"index"` // from 0
}

// MaxParts is the maximum number of parts of an audience.
const MaxParts = 10_000

// AudienceTaken describes the users that a call with an audience selected.
type AudienceTaken struct {
	// of the names; an instance keeps it for an hour after the last call that used it there
	Generation string `json:"generation"`
	Users      int    `json:"users"`               // of this call
	Next       string `json:"next,omitempty"`      // cursor of the users that follow; "": there are none
	NextPart   *Part  `json:"next_part,omitempty"` // the part that follows; nil: none
}

// AudienceCountRequest is the body of POST /v1/audience/count.
type AudienceCountRequest struct {
	AudienceQuery
	// also how many of them could be sent to now; "": by a send without a channel
	Channel *string `json:"channel,omitempty"`
	Detail  string  `json:"detail,omitempty"` // DetailSets, the default, or DetailTotal
}

// An audience can be counted in these ways.
const (
	DetailSets  = "sets"  // in all, by segment and by set
	DetailTotal = "total" // in all: Segments and Sets of the answer are empty
)

// AudienceCount is the answer to POST /v1/audience/count.
type AudienceCount struct {
	Generation string `json:"generation"`
	// Expression is the audience with what the configuration's names stand for: who asks for its parts with it is
	// told of the same users after a reload. "": there is no such name, or it would be too long for a call.
	Expression string            `json:"expression,omitempty"`
	Users      uint64            `json:"users"`
	Segments   map[string]uint64 `json:"segments"` // NoSegment for those in none; without those that have none of them
	Sets       map[string]uint64 `json:"sets"`     // without those that have none of them
	// Preview, with the channel, is what a filter call would answer now. It was decided by the
	// generation and the configuration that the next two fields name.
	Preview           *Summary `json:"preview,omitempty"`
	PreviewGeneration string   `json:"preview_generation,omitempty"`
	ConfigVersion     string   `json:"config_version,omitempty"`
}

// MaxForecasts is the maximum number of times in a ForecastRequest.
const MaxForecasts = 64

// ForecastRequest is the body of POST /v1/forecast, which asks how many users could receive a message at several
// times. Exactly one of UserIDs, UsersBitmap and Audience must be set.
type ForecastRequest struct {
	Channel     string   `json:"channel,omitempty"` // "": by a send without a channel
	UserIDs     []uint32 `json:"user_ids,omitempty"`
	UsersBitmap *Bitmap  `json:"users_bitmap,omitempty"`
	AudienceQuery
	At []time.Time `json:"at,omitempty"` // at most MaxForecasts; empty: now
}

// Forecast is the answer to POST /v1/forecast.
type Forecast struct {
	Generation    string `json:"generation"`     // of the segments
	ConfigVersion string `json:"config_version"` // of the limits
	Users         int    `json:"users"`
	// of a call with audience: whom it was about, and what follows
	Audience  *AudienceTaken  `json:"audience,omitempty"`
	Forecasts []ForecastPoint `json:"forecasts"` // in the order of the times
}

// ForecastPoint is the answer that a filter call would give at a time, if no message were sent before.
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
