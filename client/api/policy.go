package api

// Policy is the response to GET /v1/limits: the current limits.
type Policy struct {
	Version  string           `json:"version"`
	Channels map[string]uint8 `json:"channels"`
	// for users without a segment, and for segments without their own limits
	Default     []Limit            `json:"default"`
	Segments    map[string][]Limit `json:"segments"`
	ToleranceMS int64              `json:"tolerance_ms"` // extra length of rolling windows

	RequireChannel bool `json:"require_channel,omitempty"` // calls that decide or record sends must name a channel

	Suppress []Suppression `json:"suppress,omitempty"` // for a user in several sets, the first one applies
	Holdout  *Holdout      `json:"holdout,omitempty"`
	Quiet    []Quiet       `json:"quiet,omitempty"`
	// default time zone of users without one, if the policy uses users' time zones
	Timezone string `json:"timezone,omitempty"`
}

// The type Suppression denies all sends to the users of a set.
type Suppression struct {
	Set        string   `json:"set"`
	Channels   []string `json:"channels,omitempty"` // empty: all
	EvenExempt bool     `json:"even_exempt,omitempty"`
}

// The type Holdout denies sends to a fixed share of all users, who serve as a control group.
type Holdout struct {
	Percent  float64  `json:"percent"`
	Salt     string   `json:"salt"`
	Channels []string `json:"channels,omitempty"` // empty: all
}

// The type Quiet describes quiet hours.
type Quiet struct {
	From     string   `json:"from"` // such as 21:00
	To       string   `json:"to"`
	Zone     string   `json:"zone"`               // a time zone, or "user": the user's time zone
	Channels []string `json:"channels,omitempty"` // empty: all
	Sets     []string `json:"sets,omitempty"`     // only users in any of these sets; empty: everybody
}

// Limit is a limit of the policy. The fields Calendar and Timezone of a Limit apply only to limits with a calendar
// window, such as a day.
type Limit struct {
	Name     string   `json:"name"`
	Max      int      `json:"max"`
	Window   string   `json:"window"`             // "24h", or "day", "week" or "month" of the calendar
	Calendar string   `json:"calendar,omitempty"` // "day", "week" or "month"; "": rolling
	Timezone string   `json:"timezone,omitempty"` // time zone of the calendar; "user": the user's time zone
	Shadow   bool     `json:"shadow,omitempty"`   // the limit is counted but denies nobody
	Channels []string `json:"channels,omitempty"` // only sends on these channels count; empty: all
}
