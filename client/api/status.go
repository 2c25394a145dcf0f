package api

import "time"

// Status is the response to GET /v1/status: the state of the service.
type Status struct {
	Ready                bool      `json:"ready"`
	Time                 time.Time `json:"time"`
	Generation           string    `json:"generation"`
	GenerationAgeSeconds *float64  `json:"generation_age_seconds,omitempty"` // nil: unknown
	ConfigVersion        string    `json:"config_version"`
	// release of the program's time zone database, such as 2025c
	ZoneRules     string         `json:"zone_rules"`
	Store         StoreStatus    `json:"store"`
	Segments      SegmentsStatus `json:"segments"`
	Config        ConfigStatus   `json:"config"`
	Audit         *AuditStatus   `json:"audit,omitempty"` // nil: there is no audit
	InFlightUsers int64          `json:"in_flight_users"`
}

// StoreStatus is the state of the store of sends.
type StoreStatus struct {
	Kind     string   `json:"kind"`               // "embedded" or "redis"
	Path     string   `json:"path,omitempty"`     // embedded: the directory
	State    string   `json:"state"`              // "ok", "degraded" (some users would be unavailable) or "down"
	Error    string   `json:"error,omitempty"`    // reason of a state other than ok
	Warnings []string `json:"warnings,omitempty"` // problems that the start tolerated
	Fleet    *Fleet   `json:"fleet,omitempty"`    // nil for a store with a single instance
}

// Fleet describes the instances of the service that share a store, as far as the responding instance knows them.
type Fleet struct {
	Instances int            `json:"instances"`           // including the instance that responds
	Differing map[string]int `json:"differing,omitempty"` // number of instances that differ from this one, by item
	Made      time.Time      `json:"made,omitzero"`       // time at which the store was created empty
}

// SegmentsStatus is the state of the segments, such as the generation (published version) in use and the error of the
// last refresh.
type SegmentsStatus struct {
	Generation string    `json:"generation"`
	CreatedAt  time.Time `json:"created_at,omitzero"`
	LoadedAt   time.Time `json:"loaded_at,omitzero"`
	Origin     string    `json:"origin,omitempty"`    // "source" or "cache"
	CheckedAt  time.Time `json:"checked_at,omitzero"` // time of the last check of the source
	// time of the last build that published the segments in use or found no change; zero if unknown
	BuiltAt time.Time `json:"built_at,omitzero"`
	// error of the last refresh, after which the previous generation stays in use. "": the refresh succeeded
	Error    string        `json:"error,omitempty"`
	ErrorAt  time.Time     `json:"error_at,omitzero"`
	Segments []SegmentSize `json:"segments,omitempty"` // in order of precedence
	Sets     []SegmentSize `json:"sets,omitempty"`     // in the order of the generation
	Pinned   []string      `json:"pinned,omitempty"`   // earlier generations that are kept for audiences
	// sets that the configuration needs and the generation lacks: the service is not ready
	Missing []string     `json:"missing,omitempty"`
	Guarded []GuardedSet `json:"guarded,omitempty"` // sets that suppress users or that quiet hours name
	// Refused is the published generation if the service refuses to use it; nil otherwise.
	Refused *RefusedGeneration `json:"refused,omitempty"`
	// ComparedWith is the generation with which the service compared the guarded sets when the current generation came
	// into use, or when the service started. ComparedWith is empty if there was no comparison; see Unjudged.
	ComparedWith string `json:"compared_with,omitempty"`
	// Unjudged lists the losses of users that the service could not check when the generation came into use, with the
	// reason.
	Unjudged []string `json:"unjudged,omitempty"`
	// ZonelessUsers counts users in any segment or set who have no time zone; nil: no rule uses users' time zones.
	ZonelessUsers *uint64 `json:"zoneless_users,omitempty"`
}

// GuardedSet is a set with a limit on lost users: the service rejects a segments generation (published version) in
// which too many users left the set.
type GuardedSet struct {
	Name       string `json:"name"`
	Suppressed bool   `json:"suppressed"` // false: only quiet hours name the set
	Users      uint64 `json:"users"`
	// OnlyGrows means that the publisher rejects a build in which the set loses more users than permitted.
	OnlyGrows      bool      `json:"only_grows"`
	MayLosePercent float64   `json:"may_lose_percent"` // percentage of users that the set may lose in a new generation
	Left           uint64    `json:"left"`             // number of users that the set lost with the current generation
	LeftSinceStart uint64    `json:"left_since_start"`
	AsOf           time.Time `json:"as_of,omitzero"`            // time at which the newest build confirmed the set's users
	MaxAgeSeconds  float64   `json:"max_age_seconds,omitempty"` // 0: no maximum
	TooOld         bool      `json:"too_old,omitempty"`         // users are unavailable for the affected sends
}

// RefusedGeneration is a published generation of segments that the service refuses to use.
type RefusedGeneration struct {
	Generation string    `json:"generation"`
	Since      time.Time `json:"since"`
	// list of "missing" (a set is missing), "users" (a guarded set lost users) and "zones" (users lost their time
	// zone)
	Reasons []string `json:"reasons"`
	Error   string   `json:"error"`
}

// SegmentSize is the number of users in a segment and the size of its bitmap.
type SegmentSize struct {
	Name      string `json:"name"`
	Users     uint64 `json:"users"`
	SizeBytes int64  `json:"size_bytes"`
}

// ConfigStatus is the state of the configuration.
type ConfigStatus struct {
	Version  string    `json:"version"`
	LoadedAt time.Time `json:"loaded_at,omitzero"`
	// error of the last reload, after which the previous configuration stays in use. "": the reload succeeded
	Error    string    `json:"error,omitempty"`
	ErrorAt  time.Time `json:"error_at,omitzero"`
	Problems []string  `json:"problems,omitempty"` // unusual but allowed settings
}

// The type Probe is the response to GET /healthz and GET /readyz with status 200. If a health check of the service
// fails, the response is status 503 and an Error instead of a Probe.
type Probe struct {
	Status string `json:"status"` // "ok" and "ready"
}
