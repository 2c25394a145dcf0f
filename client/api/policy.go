package api

// Policy is the answer of GET /v1/limits: the limits in force.
type Policy struct {
	Version     string             `json:"version"`
	Channels    map[string]uint8   `json:"channels"`
	Default     []Limit            `json:"default"` // of users in no segment, and of segments without limits of their own
	Segments    map[string][]Limit `json:"segments"`
	ToleranceMS int64              `json:"tolerance_ms"` // rolling windows are longer by this
}

// Limit is a limit of the policy. Calendar and Timezone are those of calendar
// windows.
type Limit struct {
	Name     string   `json:"name"`
	Max      int      `json:"max"`
	Window   string   `json:"window"`             // "24h", or "day" or "week" of the calendar
	Calendar string   `json:"calendar,omitempty"` // "day" or "week"; "": rolling
	Timezone string   `json:"timezone,omitempty"` // of the calendar
	Channels []string `json:"channels,omitempty"` // whose sends count; empty: all
}
