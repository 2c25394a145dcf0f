package api

import "time"

// Activity is the response to GET /v1/activity: the numbers of decisions by all instances about all messages, by hour.
type Activity struct {
	Since time.Time      `json:"since"` // begin of the first hour
	Until time.Time      `json:"until"`
	Hours []ActivityHour `json:"hours"` // in order, only hours with calls
}

// ActivityHour counts the results of the filter calls in one hour, without previews (filter calls that record no
// sends). If a user was in two filter calls of an hour, ActivityHour counts the user twice.
type ActivityHour struct {
	At          time.Time        `json:"at"` // begin of the hour, in UTC
	Calls       int64            `json:"calls"`
	Asked       int64            `json:"asked"`
	Allowed     int64            `json:"allowed"`  // without replayed
	Replayed    int64            `json:"replayed"` // users whose send an earlier call recorded
	Denied      map[string]int64 `json:"denied"`   // by the name of the limit, or LimitSuppressed, LimitHoldout, LimitQuiet
	Unavailable int64            `json:"unavailable"`
	Parts       []ActivityPart   `json:"parts"` // in order, only parts with calls
}

// ActivityPart counts the results of the filter calls in a period of five minutes.
type ActivityPart struct {
	At      time.Time `json:"at"` // begin of the part
	Asked   int64     `json:"asked"`
	Allowed int64     `json:"allowed"` // without replayed
	Denied  int64     `json:"denied"`
}
