package api

import "time"

// SendsCheckRequest is the body of POST /v1/sends/check, which asks who has a recorded send of a message. A
// SendsCheckRequest names its users in exactly one of the fields UserIDs, UsersBitmap, UsersPacked and Images.
type SendsCheckRequest struct {
	MessageID   string   `json:"message_id"`
	Channel     string   `json:"channel,omitempty"` // "": a send without a channel
	UserIDs     []uint32 `json:"user_ids,omitempty"`
	UsersBitmap *Bitmap  `json:"users_bitmap,omitempty"`
	UsersPacked []byte   `json:"users_packed,omitempty"` // packed ids; the response is a SendsCheckStrings
	// Images holds, for each user, the image of the id (a 64-bit number) as 16 hexadecimal digits. The response is a
	// SendsCheckStrings, in which "image:" and the digits replace the id.
	Images []string `json:"images,omitempty"`
}

// SendsCheck is the response to POST /v1/sends/check, which asks who has a recorded send of a message. SendsCheck only
// counts the users with a recorded send, and does not list them.
type SendsCheck struct {
	Missing     []MissingSends    `json:"missing"`     // users whose log lacks the send, by storage location
	Unavailable []uint32          `json:"unavailable"` // unknown result: ask again
	Time        time.Time         `json:"time"`        // when the service asked the store
	Summary     SendsCheckSummary `json:"summary"`
}

// MissingSends lists users for whom the store has no recorded send of the message. The logs of all users in one
// MissingSends are in the same partition of the store.
type MissingSends struct {
	Partition *int     `json:"partition,omitempty"` // for Redis only
	Node      string   `json:"node,omitempty"`      // for Redis only: the server of the partition
	UserIDs   []uint32 `json:"user_ids"`
}

// SendsCheckSummary counts users by the result of a check of recorded sends.
type SendsCheckSummary struct {
	Requested int `json:"requested"`
	Recorded  int `json:"recorded"`
	Missing   int `json:"missing"`
	// Forgotten counts users without a recorded send whose log of sends is full. Newer sends may have displaced the
	// send from a full log.
	Forgotten   int `json:"forgotten"`
	Unavailable int `json:"unavailable"`
	Duplicates  int `json:"duplicates"`
}
