package server

import (
	"context"
	"net/http"
	"time"

	"capper/internal/capping"
	"capper/internal/server/access"
	"capper/internal/server/failure"
)

// SegmentsStatus is the state of the segments, for /v1/status.
type SegmentsStatus struct {
	Generation string        `json:"generation"`
	CreatedAt  time.Time     `json:"created_at,omitzero"`
	LoadedAt   time.Time     `json:"loaded_at,omitzero"`
	Origin     string        `json:"origin,omitempty"`    // "source" or "cache"
	CheckedAt  time.Time     `json:"checked_at,omitzero"` // when the source was last asked
	BuiltAt    time.Time     `json:"built_at,omitzero"`   // when a build last published, or found its segments live already
	Error      string        `json:"error,omitempty"`     // of the last refresh; the generation before it stays in use
	ErrorAt    time.Time     `json:"error_at,omitzero"`
	Segments   []SegmentSize `json:"segments,omitempty"` // in order of precedence
}

// SegmentSize is how large a segment is.
type SegmentSize struct {
	Name      string `json:"name"`
	Users     uint64 `json:"users"`
	SizeBytes int64  `json:"size_bytes"`
}

// ConfigStatus is the state of the configuration, for /v1/status.
type ConfigStatus struct {
	Version  string    `json:"version"`
	LoadedAt time.Time `json:"loaded_at,omitzero"`
	Error    string    `json:"error,omitempty"` // of the last reload; the configuration before it stays in force
	ErrorAt  time.Time `json:"error_at,omitzero"`
	Problems []string  `json:"problems,omitempty"` // what is odd and tolerated
}

type statusAnswer struct {
	Ready         bool           `json:"ready"`
	Time          time.Time      `json:"time"`
	Generation    string         `json:"generation"`
	GenerationAge *float64       `json:"generation_age_seconds,omitempty"`
	ConfigVersion string         `json:"config_version"`
	Store         capping.Health `json:"store"`
	Segments      SegmentsStatus `json:"segments"`
	Config        ConfigStatus   `json:"config"`
	InFlightUsers int64          `json:"in_flight_users"`
}

// status serves GET /v1/status.
func (s *Server) status(c *call) error {
	now := s.clock().UTC()
	answer := statusAnswer{
		Time:          now.Truncate(time.Millisecond),
		Generation:    s.capper.Segments().Generation(),
		ConfigVersion: s.capper.Policy().Version,
		Store:         s.health(c.r),
		Segments:      s.segments(), Config: s.configStatus(),
		InFlightUsers: s.budgets.Users.InUse(),
	}
	answer.Ready = s.ready.Load() && answer.Store.State != "down"
	if created := answer.Segments.CreatedAt; !created.IsZero() {
		age := now.Sub(created).Seconds()
		answer.GenerationAge = &age
	}
	return writeJSON(c.w, answer)
}

// healthTimeout bounds what a probe waits for the store.
const healthTimeout = time.Second

func (s *Server) health(r *http.Request) capping.Health {
	ctx, cancel := context.WithTimeout(r.Context(), healthTimeout)
	defer cancel()
	h := s.capper.Store().Health(ctx)
	if shared, ok := s.limiter.(*access.SteadyLimiter); ok && h.State == "ok" {
		if trouble := shared.Trouble(); trouble != "" {
			h.State, h.Error = "degraded", trouble
		}
	}
	return h
}

type probe struct {
	Status string `json:"status"`
}

// alive serves GET /healthz: the process answers.
func (s *Server) alive(c *call) error { return writeJSON(c.w, probe{Status: "ok"}) }

// readiness serves GET /readyz: calls should be sent here.
func (s *Server) readiness(c *call) error {
	if !s.ready.Load() {
		return notReady("the service is starting or stopping")
	}
	if s.health(c.r).State == "down" {
		return notReady("the store is down")
	}
	return writeJSON(c.w, probe{Status: "ready"})
}

func notReady(reason string) *failure.Failure {
	f := failure.New(failure.CodeUnavailable, "not ready: %s", reason)
	f.RetryAfter = time.Second
	return f
}
