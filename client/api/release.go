package api

// ReleaseRequest is the body of POST /v1/release, which cancels recorded sends that did not take place. A
// ReleaseRequest names its users in exactly one of the fields UserIDs, UsersBitmap, UsersPacked and Audience.
type ReleaseRequest struct {
	MessageID   string   `json:"message_id"`
	Channel     string   `json:"channel,omitempty"` // "": every channel, and sends without one
	UserIDs     []uint32 `json:"user_ids,omitempty"`
	UsersBitmap *Bitmap  `json:"users_bitmap,omitempty"` // the response has bitmaps too
	UsersPacked []byte   `json:"users_packed,omitempty"` // packed ids; the response is a ReleasePositions
	AudienceQuery
}

// ReleaseIDs is the response to a release call with the field user_ids. ReleaseIDs does not list users without a
// recorded send of the message; the summary counts these users as absent.
type ReleaseIDs struct {
	Released    []uint32       `json:"released"`
	Unavailable []uint32       `json:"unavailable"` // unknown result: release again
	Summary     ReleaseSummary `json:"summary"`
}

// ReleaseBitmaps is the response to a release call with the field users_bitmap or audience.
type ReleaseBitmaps struct {
	ReleasedBitmap    Bitmap `json:"released_bitmap"`
	UnavailableBitmap Bitmap `json:"unavailable_bitmap"`
	// for a call with audience: its users, and the cursor of the next call
	Audience *AudienceTaken `json:"audience,omitempty"`
	Summary  ReleaseSummary `json:"summary"`
}

// ReleasePositions is the response to a release call with the field users_packed. The bitmaps of ReleasePositions hold
// positions of ids in users_packed.
type ReleasePositions struct {
	ReleasedPositions    Bitmap         `json:"released_positions"`
	UnavailablePositions Bitmap         `json:"unavailable_positions"`
	Summary              ReleaseSummary `json:"summary"`
}

// ReleasePacked is the response to a release call with the field audience, in a deployment whose ids are UUIDs or
// uint64.
type ReleasePacked struct {
	ReleasedPacked    []byte         `json:"released_packed"`
	UnavailablePacked []byte         `json:"unavailable_packed"`
	Audience          *AudienceTaken `json:"audience,omitempty"`
	Summary           ReleaseSummary `json:"summary"`
}

// ReleaseSummary counts the users of a release call, by result.
type ReleaseSummary struct {
	Requested   int `json:"requested"`
	Released    int `json:"released"`
	Absent      int `json:"absent"`
	Unavailable int `json:"unavailable"`
	Duplicates  int `json:"duplicates"`
}

// The method Add adds the counts in the summary of another release call to the receiver s.
func (s *ReleaseSummary) Add(batch *ReleaseSummary) {
	s.Requested += batch.Requested
	s.Released += batch.Released
	s.Absent += batch.Absent
	s.Unavailable += batch.Unavailable
	s.Duplicates += batch.Duplicates
}
