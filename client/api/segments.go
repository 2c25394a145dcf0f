package api

import "time"

// The type Segments is the response to GET /v1/segments.
type Segments struct {
	Generation string        `json:"generation"`
	CreatedAt  time.Time     `json:"created_at"`
	Segments   []SegmentInfo `json:"segments"` // segments in order of precedence, then sets in the order of the generation
	// the named expressions of the configuration, by name
	Audiences map[string]string `json:"audiences,omitempty"`
}

// SegmentInfo describes a segment or a set of a generation (published version of segments and sets).
type SegmentInfo struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"` // KindSegment or KindSet
	Users     uint64 `json:"users"`
	SizeBytes int64  `json:"size_bytes"` // size of the published bitmap
}

// KindSegment and KindSet are the values of SegmentInfo.Kind.
const (
	KindSegment = "segment" // a user is in at most one segment
	KindSet     = "set"     // a user may be in several sets
)

// LookupRequest is the body of POST /v1/segments/lookup, which asks for the segment and the sets of users. A
// LookupRequest names its users in exactly one of the fields UserIDs, UsersBitmap, UsersPacked and Audience.
type LookupRequest struct {
	UserIDs     []uint32 `json:"user_ids,omitempty"`
	UsersBitmap *Bitmap  `json:"users_bitmap,omitempty"` // the response has bitmaps too
	UsersPacked []byte   `json:"users_packed,omitempty"` // packed ids; the response is a LookupPositions
	AudienceQuery
	Sets []string `json:"sets,omitempty"` // also report membership in these sets, at most MaxLookupSets
}

// MaxLookupSets is the maximum number of sets in which one lookup can search for the users.
const MaxLookupSets = 64

// LookupIDs is the response to a lookup with the field user_ids. LookupIDs lists each user once, in the order of the
// request.
type LookupIDs struct {
	Generation string       `json:"generation"`
	Users      []UserLookup `json:"users"`
}

// UserLookup holds the segment of a user, and the requested sets that contain the user.
type UserLookup struct {
	UserID  uint32   `json:"user_id"`
	Segment string   `json:"segment"` // NoSegment for users without a segment
	Sets    []string `json:"sets"`    // the requested sets that contain the user
}

// LookupBitmaps is the response to a lookup with the field users_bitmap or audience. For each segment and each
// requested set, LookupBitmaps holds the requested users in this segment or set. LookupBitmaps leaves out segments
// without any requested user.
type LookupBitmaps struct {
	Generation string            `json:"generation"`
	Segments   map[string]Bitmap `json:"segments"`
	Sets       map[string]Bitmap `json:"sets"`
	Audience   *AudienceTaken    `json:"audience,omitempty"`
}

// LookupPositions is the response to a lookup with the field users_packed. The bitmaps of LookupPositions hold
// positions of ids in users_packed.
type LookupPositions struct {
	Generation       string            `json:"generation"`
	SegmentPositions map[string]Bitmap `json:"segment_positions"` // segments without any of the users are left out
	SetPositions     map[string]Bitmap `json:"set_positions"`
}

// LookupPacked is the response to a lookup with the field audience, in a deployment whose ids are UUIDs or uint64.
type LookupPacked struct {
	Generation    string            `json:"generation"`
	SegmentPacked map[string][]byte `json:"segment_packed"` // segments without any of the users are left out
	SetPacked     map[string][]byte `json:"set_packed"`
	Audience      *AudienceTaken    `json:"audience,omitempty"`
}

// HeaderGeneration is the HTTP header in which GET /v1/segments/{name}/bitmap returns the name of the segments
// generation (published version). The body of the response to GET /v1/segments/{name}/bitmap is a bitmap in the
// portable roaring format (application/octet-stream). In the URL path, a "/" in the name of a segment is written as
// %2F. The query parameter "generation" of GET /v1/segments/{name}/bitmap selects an earlier segments generation that
// the service still has in memory.
const HeaderGeneration = "X-Segments-Generation"

// The type Members is the response to GET /v1/segments/{name}/members: a page of the ids in a segment or set, in
// ascending order.
type Members struct {
	Generation string   `json:"generation"`
	Name       string   `json:"name"`
	UserIDs    []uint32 `json:"user_ids"`
	Next       *uint32  `json:"next"` // value of the parameter "after" for the next page; nil: no more
}

// MemberStrings is a page of the ids in a segment or set, in a deployment whose ids are uint64, uuid or text.
// MemberStrings lists the ids in the order of their id images (64-bit hashes of ids). The order of ids by their id
// images is the same in all generations (published versions).
type MemberStrings struct {
	Generation string   `json:"generation"`
	Name       string   `json:"name"`
	UserIDs    []string `json:"user_ids"` // canonical ids
	Next       *string  `json:"next"`
}

// The type Generations is the response to GET /v1/generations: the published generations (versions of the segments),
// the newest first.
type Generations struct {
	InUse       string           `json:"in_use"` // generation that this service instance uses; "": none
	Generations []GenerationInfo `json:"generations"`
	More        bool             `json:"more"` // older generations exist
}

// GenerationInfo describes one generation: a published version of all segments and sets. If the service cannot read
// the manifest of the generation, the fields of GenerationInfo that come from the manifest are zero.
type GenerationInfo struct {
	Generation string    `json:"generation"`
	Live       bool      `json:"live"`                // at the source
	CreatedAt  time.Time `json:"created_at,omitzero"` // time in the manifest
	StoredAt   time.Time `json:"stored_at,omitzero"`  // time at the source
	// time of the last build, if the build published this generation or found no change
	CheckedAt   time.Time `json:"checked_at,omitzero"`
	WithdrawnAt time.Time `json:"withdrawn_at,omitzero"` // time of the rollback from this generation
	HeldSince   time.Time `json:"held_since,omitzero"`   // for the live generation: publishing is on hold since then
	HeldFor     string    `json:"held_for,omitempty"`    // reason of the hold
	ToolVersion string    `json:"tool_version,omitempty"`
	Reason      string    `json:"reason,omitempty"` // reason for overriding the publisher's checks
	Segments    int       `json:"segments"`
	Sets        int       `json:"sets"`
	Users       uint64    `json:"users"` // number of users in segments
	SizeBytes   int64     `json:"size_bytes"`
	Fault       string    `json:"fault,omitempty"` // error of reading the manifest
}

// GenerationChanges is the response to GET /v1/generations/{generation}/changes: the differences of the segments and
// sets from an earlier generation (published version).
type GenerationChanges struct {
	From string `json:"from"`
	To   string `json:"to"`
	// true: users were compared. false: only sizes were compared, so added, removed, moved_from and in_none are
	// unknown
	Exact    bool             `json:"exact"`
	Segments []SegmentChange  `json:"segments"` // in the order of the later generation, then the removed segments
	Sets     []SegmentChange  `json:"sets"`
	InNone   *NoSegmentChange `json:"in_none,omitempty"` // nil when Exact is false
}

// SegmentChange describes the difference of a segment or a set between two generations (published versions).
type SegmentChange struct {
	Name    string `json:"name"`
	State   string `json:"state"` // "same", "changed", "appears", "vanishes", "empties" or "fills"
	Before  uint64 `json:"before"`
	After   uint64 `json:"after"`
	Added   uint64 `json:"added"`   // users who are in the segment now and were not before
	Removed uint64 `json:"removed"` // users who were in the segment before and are not now
	// users in Added who came from other segments; the others had no segment
	MovedFrom []SegmentMove `json:"moved_from,omitempty"`
}

// SegmentMove counts users who moved to a segment from another segment.
type SegmentMove struct {
	From  string `json:"from"`
	Users uint64 `json:"users"`
}

// NoSegmentChange counts users who left all segments, and users who had no segment and joined one.
type NoSegmentChange struct {
	Left   uint64 `json:"left"`   // users with a segment before and without one now
	Joined uint64 `json:"joined"` // users without a segment before and with one now
}
