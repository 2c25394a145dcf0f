package api

import "time"

// Status is the answer of GET /v1/status: the state of the service.
type Status struct {
	Ready                bool      `json:"ready"`
	Time                 time.Time `json:"time"`
	Generation           string    `json:"generation"`
	GenerationAgeSeconds *float64  `json:"generation_age_seconds,omitempty"` // nil: not known
	ConfigVersion        string    `json:"config_version"`
	// release of the time zone database in the program, such as 2025c
	ZoneRules     string         `json:"zone_rules"`
	Store         StoreStatus    `json:"store"`
	Segments      SegmentsStatus `json:"segments"`
	Config        ConfigStatus   `json:"config"`
	Audit         *AuditStatus   `json:"audit,omitempty"` // nil: there is none
	InFlightUsers int64          `json:"in_flight_users"`
}

// StoreStatus is the state of the store.
type StoreStatus struct {
	Kind     string   `json:"kind"`               // "embedded" or "redis"
	Path     string   `json:"path,omitempty"`     // embedded: the directory
	State    string   `json:"state"`              // "ok", "degraded" (some users would be unavailable) or "down"
	Error    string   `json:"error,omitempty"`    // why it is not ok
	Warnings []string `json:"warnings,omitempty"` // what start-up checks found and tolerated
	Fleet    *Fleet   `json:"fleet,omitempty"`    // nil of a store of one instance
}

// Fleet describes the instances that share a store, from the view of the instance that answers.
type Fleet struct {
	Instances int            `json:"instances"`           // with the one that was asked
	Differing map[string]int `json:"differing,omitempty"` // how many others differ from it, by what differs
	Made      time.Time      `json:"made,omitzero"`       // when the store was begun with nothing recorded
}

// SegmentsStatus is the state of the segments.
type SegmentsStatus struct {
	Generation string    `json:"generation"`
	CreatedAt  time.Time `json:"created_at,omitzero"`
	LoadedAt   time.Time `json:"loaded_at,omitzero"`
	Origin     string    `json:"origin,omitempty"`    // "source" or "cache"
	CheckedAt  time.Time `json:"checked_at,omitzero"` // when the source was last asked
	// when a build last published, or found its segments live already; zero if not known
	BuiltAt time.Time `json:"built_at,omitzero"`
	// of the last refresh; the generation before it stays in use. "": it went well
	Error    string        `json:"error,omitempty"`
	ErrorAt  time.Time     `json:"error_at,omitzero"`
	Segments []SegmentSize `json:"segments,omitempty"` // in order of precedence
	Sets     []SegmentSize `json:"sets,omitempty"`     // in the order of the generation
	Pinned   []string      `json:"pinned,omitempty"`   // earlier generations that are kept for audiences
	// sets that the configuration needs and the generation lacks: the service is not ready
	Missing []string     `json:"missing,omitempty"`
	Guarded []GuardedSet `json:"guarded,omitempty"` // sets that suppress, or that quiet hours name
	// Refused is the published generation while it is kept out of use; nil: it is not.
	Refused *RefusedGeneration `json:"refused,omitempty"`
	// ComparedWith is the generation with whose guarded sets the one in use was compared when it
	// came into use, at a start too; empty where none was compared: see Unjudged.
	ComparedWith string `json:"compared_with,omitempty"`
	// losses that were not compared when the generation came into use, and why
	Unjudged []string `json:"unjudged,omitempty"`
	// ZonelessUsers counts users of any segment or set who are in no set of a time zone; nil:
	// nothing goes by users' time zones.
	ZonelessUsers *uint64 `json:"zoneless_users,omitempty"`
}

// GuardedSet is a set with a limit on its losses: a generation that loses more users of the set is not used.
type GuardedSet struct {
	Name       string `json:"name"`
	Suppressed bool   `json:"suppressed"` // false: quiet hours name it
	Users      uint64 `json:"users"`
	// the publisher lets no users leave it, beyond the loss that it states
	OnlyGrows      bool      `json:"only_grows"`
	MayLosePercent float64   `json:"may_lose_percent"` // users who may leave it with one generation, per 100
	Left           uint64    `json:"left"`             // users who left it with the generation in use
	LeftSinceStart uint64    `json:"left_since_start"`
	AsOf           time.Time `json:"as_of,omitzero"`            // when the newest build confirmed its users
	MaxAgeSeconds  float64   `json:"max_age_seconds,omitempty"` // 0: any age
	TooOld         bool      `json:"too_old,omitempty"`         // users of the sends that it concerns are unavailable
}

// RefusedGeneration is a published generation that the service refuses to use.
type RefusedGeneration struct {
	Generation string    `json:"generation"`
	Since      time.Time `json:"since"`
	// of "missing" (it lacks a set), "users" (they left a guarded set), "zones" (users lost their time zone)
	Reasons []string `json:"reasons"`
	Error   string   `json:"error"`
}

// SegmentSize is the size of a segment.
type SegmentSize struct {
	Name      string `json:"name"`
	Users     uint64 `json:"users"`
	SizeBytes int64  `json:"size_bytes"`
}

// ConfigStatus is the state of the configuration.
type ConfigStatus struct {
	Version  string    `json:"version"`
	LoadedAt time.Time `json:"loaded_at,omitzero"`
	// of the last reload; the configuration before it stays in force. "": it went well
	Error    string    `json:"error,omitempty"`
	ErrorAt  time.Time `json:"error_at,omitzero"`
	Problems []string  `json:"problems,omitempty"` // what is odd and tolerated
}

// Probe is the answer of GET /healthz and GET /readyz with status 200. Otherwise these calls return status 503.
type Probe struct {
	Status string `json:"status"` // "ok" and "ready"
}
