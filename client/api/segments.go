package api

import "time"

// Segments is the answer of GET /v1/segments.
type Segments struct {
	Generation string        `json:"generation"`
	CreatedAt  time.Time     `json:"created_at"`
	Segments   []SegmentInfo `json:"segments"` // segments in order of precedence, then sets in that of the generation
}

// SegmentInfo is a segment or a set.
type SegmentInfo struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"` // KindSegment or KindSet
	Users     uint64 `json:"users"`
	SizeBytes int64  `json:"size_bytes"` // of the published bitmap
}

// What SegmentInfo.Kind says.
const (
	KindSegment = "segment" // a user is in one at most
	KindSet     = "set"     // a user may be in several
)

// LookupRequest is the body of POST /v1/segments/lookup. Exactly one of UserIDs,
// UsersBitmap and Audience is given.
type LookupRequest struct {
	UserIDs     []uint32 `json:"user_ids,omitempty"`
	UsersBitmap *Bitmap  `json:"users_bitmap,omitempty"` // the answer is bitmaps too
	AudienceQuery
	Sets []string `json:"sets,omitempty"` // also whether the users are in these, at most MaxLookupSets
}

// MaxLookupSets is the most sets that a lookup can ask for.
const MaxLookupSets = 64

// LookupIDs is the answer to a lookup of user_ids, in their order, each once.
type LookupIDs struct {
	Generation string       `json:"generation"`
	Users      []UserLookup `json:"users"`
}

// UserLookup is what a user is in.
type UserLookup struct {
	UserID  uint32   `json:"user_id"`
	Segment string   `json:"segment"` // NoSegment for users in none
	Sets    []string `json:"sets"`    // those of the sets asked for that the user is in
}

// LookupBitmaps is the answer to a lookup of users_bitmap or audience: those of the
// users that are in each segment, and in each set asked for. Segments without any are left out.
type LookupBitmaps struct {
	Generation string            `json:"generation"`
	Segments   map[string]Bitmap `json:"segments"`
	Sets       map[string]Bitmap `json:"sets"`
	Audience   *AudienceTaken    `json:"audience,omitempty"`
}

// HeaderGeneration is the header in which GET /v1/segments/{name}/bitmap names the generation of its
// answer, which is the bitmap itself in the portable roaring format (application/octet-stream). A /
// of a name is %2F in these paths; the parameter generation asks for one that is kept.
const HeaderGeneration = "X-Segments-Generation"

// Members is the answer of GET /v1/segments/{name}/members: a page of ids, ascending.
type Members struct {
	Generation string   `json:"generation"`
	Name       string   `json:"name"`
	UserIDs    []uint32 `json:"user_ids"`
	Next       *uint32  `json:"next"` // the parameter after of the next page; nil: this was the last
}
