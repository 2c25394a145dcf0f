package api

import "time"

// Pressure is the response to GET /v1/pressure. Pressure holds the number of messages per person in each week, and the
// number of people who may receive no further message now. Pressure also lists the campaigns that used up the limits,
// so that users did not receive other campaigns.
type Pressure struct {
	// Weeks are periods of 7 days, the latest week first. The latest week ends at the time of the call, or at the time
	// "until" of the request. Every list of numbers by week has the order of Weeks.
	Weeks         []PressureWeek `json:"weeks"`
	Channel       string         `json:"channel,omitempty"`   // only messages on this channel are counted; "": all
	Namespace     string         `json:"namespace,omitempty"` // only messages of this namespace are counted; "": all
	Generation    string         `json:"generation"`          // segments generation; "": unknown
	ConfigVersion string         `json:"config_version"`      // version of the limits in AtLimits
	// AuditBegins is the time of the first record that was read; earlier messages are unknown.
	AuditBegins time.Time `json:"audit_begins,omitzero"`
	Records     int64     `json:"records"`          // calls that were read
	Gaps        int64     `json:"gaps"`             // places where records were lost
	Faults      []string  `json:"faults,omitempty"` // files of the audit that cannot be read
	// People has one row for everybody, and one row for each segment, channel and namespace.
	People    []PressurePeople   `json:"people"`
	AtLimits  []PressureAtLimit  `json:"at_limits"`
	AtLimit   *PressureUsers     `json:"at_limit,omitempty"` // for a call with segment
	Campaigns []PressureCampaign `json:"campaigns"`          // sorted by the messages of all weeks, descending
	// More means that the response leaves out campaigns or rows of HeldBack; see the request parameter max.
	More     bool           `json:"more"`
	HeldBack []PressureHeld `json:"held_back"` // sorted by the number of denied users, descending
}

// PressureWeek is a period of 7 days that includes the time From and excludes the time To.
type PressureWeek struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// PressureAll, PressureSegment, PressureChannel and PressureNamespace are the values of PressurePeople.By.
const (
	PressureAll       = "all"
	PressureSegment   = "segment"
	PressureChannel   = "channel"
	PressureNamespace = "namespace"
)

// PressureMost is the maximum length of the list PressureSpread.Got. The element of PressureSpread.Got with the index
// PressureMost-1 counts people with PressureMost or more messages.
const PressureMost = 20

// PressurePeople counts people by the number of messages that they received. A PressurePeople describes the users of
// one segment, or all people who received messages on a channel or in a namespace.
type PressurePeople struct {
	By   string `json:"by"`   // "all", "segment", "channel" or "namespace"
	Name string `json:"name"` // NoSegment for users in no segment; "" for no channel or no namespace
	// Size is the number of users in the segment, or in all segments. Size is left out if it is unknown, such as for
	// users in no segment.
	Size  *int64           `json:"size,omitempty"`
	Weeks []PressureSpread `json:"weeks"`
}

// PressureSpread counts people by the number of messages that they received in one week.
type PressureSpread struct {
	Messages int64 `json:"messages"` // number of messages, without released ones
	// The field None is the number of users in a segment who received no message. JSON omits an unknown number.
	None *int64 `json:"none,omitempty"`
	// Got[i] is the number of people who received i+1 messages. Got[19] is the number of people who received 20 or more
	// messages. All lists in a response have the same length. The counts for higher numbers of messages are 0.
	Got []int64 `json:"got"`
}

// PressureAtLimit holds the number of users of a segment who are at a limit now. A user is at a limit if the limit
// would deny the user the next message that the limit counts.
type PressureAtLimit struct {
	Segment string               `json:"segment"` // NoSegment for users in no segment
	Size    *int64               `json:"size,omitempty"`
	Any     int64                `json:"any"` // users at one limit or more, each once
	Limits  []PressureLimitUsers `json:"limits"`
}

// PressureLimitUsers is the number of users who are at a certain limit: the limit would deny these users the next
// message.
type PressureLimitUsers struct {
	Name     string   `json:"name"`
	Max      int      `json:"max"`
	Window   string   `json:"window"`             // such as "24h", or "day", "week" or "month" of the calendar
	Channels []string `json:"channels,omitempty"` // left out: all
	Users    int64    `json:"users"`
}

// PressureUsers holds the users of a segment to whom a limit would deny the next message now.
type PressureUsers struct {
	Segment     string   `json:"segment"`
	Limit       string   `json:"limit,omitempty"`        // left out: any limit
	UsersBitmap *Bitmap  `json:"users_bitmap,omitempty"` // dense ids
	UserIDs     []string `json:"user_ids,omitzero"`      // other ids
}

// PressureCampaign is a message on a channel, with the number of the message's sends by week. If the API key has a
// namespace, all campaigns of another namespace on a channel share one PressureCampaign without a message id.
type PressureCampaign struct {
	PressureMessage
	Messages []int64 `json:"messages"` // without released ones
	Released []int64 `json:"released"` // messages of the week that were released, then or later
	HeldBack []int64 `json:"held_back"`
}

// PressureMessage names a message on a channel.
type PressureMessage struct {
	MessageID string `json:"message_id"`
	Namespace string `json:"namespace,omitempty"`
	Title     string `json:"title,omitempty"` // the message's name for people, if the store still counts the message
	Channel   string `json:"channel"`
}

// PressureHeld is a campaign with the number of users to whom a limit with a max above 0 denied the campaign.
// PressureHeld counts each denied user once, even if several calls denied the campaign to the user. TakenBy lists the
// campaigns that had sent messages to the denied users within the window of the limit.
type PressureHeld struct {
	PressureMessage
	Users   int64           `json:"users"`
	TakenBy []PressureTaken `json:"taken_by"` // by users, descending
}

// PressureTaken is the number of users who had received one campaign and were therefore denied another campaign.
// PressureTaken may count a user several times: for each campaign that the user had received.
type PressureTaken struct {
	PressureMessage
	Users int64 `json:"users"`
}
