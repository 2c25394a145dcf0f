package client

import (
	"context"
	"time"
)

// Status is the state of the service.
type Status struct {
	Ready                bool           `json:"ready"`
	Time                 time.Time      `json:"time"`
	Generation           string         `json:"generation"`
	GenerationAgeSeconds *float64       `json:"generation_age_seconds"` // nil: not known
	ConfigVersion        string         `json:"config_version"`
	Store                StoreStatus    `json:"store"`
	Segments             SegmentsStatus `json:"segments"`
	Config               ConfigStatus   `json:"config"`
	InFlightUsers        int64          `json:"in_flight_users"`
}

// StoreStatus is the state of the store.
type StoreStatus struct {
	Kind     string   `json:"kind"`  // "embedded" or "redis"
	Path     string   `json:"path"`  // embedded: the directory
	State    string   `json:"state"` // "ok", "degraded" or "down"
	Error    string   `json:"error"`
	Warnings []string `json:"warnings"`
	Fleet    *Fleet   `json:"fleet"` // nil of a store of one instance
}

// Fleet is the instances that share a store, as the one that was asked sees it.
type Fleet struct {
	Instances int            `json:"instances"` // with the one that was asked
	Differing map[string]int `json:"differing"` // how many others differ from it, by what differs
	Made      time.Time      `json:"made"`      // when the store was begun with nothing recorded
}

// SegmentsStatus is the state of the segments.
type SegmentsStatus struct {
	Generation string        `json:"generation"`
	CreatedAt  time.Time     `json:"created_at"`
	LoadedAt   time.Time     `json:"loaded_at"`
	Origin     string        `json:"origin"` // "source" or "cache"
	CheckedAt  time.Time     `json:"checked_at"`
	BuiltAt    time.Time     `json:"built_at"` // when a build of segments last came to its end; zero if not known
	Error      string        `json:"error"`    // of the last refresh; "": it went well
	ErrorAt    time.Time     `json:"error_at"`
	Segments   []SegmentSize `json:"segments"` // in order of precedence
}

// SegmentSize is how large a segment is.
type SegmentSize struct {
	Name      string `json:"name"`
	Users     uint64 `json:"users"`
	SizeBytes int64  `json:"size_bytes"`
}

// ConfigStatus is the state of the configuration.
type ConfigStatus struct {
	Version  string    `json:"version"`
	LoadedAt time.Time `json:"loaded_at"`
	Error    string    `json:"error"` // of the last reload; "": it went well
	ErrorAt  time.Time `json:"error_at"`
	Problems []string  `json:"problems"`
}

// Status reads the state of the service.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	return read[Status](ctx, c, "/v1/status")
}
