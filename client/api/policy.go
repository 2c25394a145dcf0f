package api

// Policy is the answer of GET /v1/limits: the current limits.
type Policy struct {
	Version  string           `json:"version"`
	Channels map[string]uint8 `json:"channels"`
	// of users in no segment, and of segments without limits of their own
	Default     []Limit            `json:"default"`
	Segments    map[string][]Limit `json:"segments"`
	ToleranceMS int64              `json:"tolerance_ms"` // rolling windows are longer by this

	RequireChannel bool `json:"require_channel,omitempty"` // calls that decide or record sends must name a channel

	Suppress []Suppression `json:"suppress,omitempty"` // the first one that a user is in counts
	Holdout  *Holdout      `json:"holdout,omitempty"`
	Quiet    []Quiet       `json:"quiet,omitempty"`
	// of users in no set of a time zone, where the policy asks for users' time zones
	Timezone string `json:"timezone,omitempty"`
}

// Suppression denies all sends to the users of a set.
type Suppression struct {
	Set        string   `json:"set"`
	Channels   []string `json:"channels,omitempty"` // empty: all
	EvenExempt bool     `json:"even_exempt,omitempty"`
}

// Holdout denies sends to a fixed share of all users, who serve as a control group.
type Holdout struct {
	Percent  float64  `json:"percent"`
	Salt     string   `json:"salt"`
	Channels []string `json:"channels,omitempty"` // empty: all
}

// Quiet describes quiet hours.
type Quiet struct {
	From     string   `json:"from"` // such as 21:00
	To       string   `json:"to"`
	Zone     string   `json:"zone"`               // a time zone, or "user": that of the user
	Channels []string `json:"channels,omitempty"` // empty: all
	Sets     []string `json:"sets,omitempty"`     // users of any of these only; empty: everybody
}

// Limit is a limit of the policy. Calendar and Timezone apply to calendar windows only.
type Limit struct {
	Name     string   `json:"name"`
	Max      int      `json:"max"`
	Window   string   `json:"window"`             // "24h", or "day", "week" or "month" of the calendar
	Calendar string   `json:"calendar,omitempty"` // "day", "week" or "month"; "": rolling
	Timezone string   `json:"timezone,omitempty"` // of the calendar; "user": that of the user
	Shadow   bool     `json:"shadow,omitempty"`   // judged and counted, and denies nobody
	Channels []string `json:"channels,omitempty"` // whose sends count; empty: all
}
