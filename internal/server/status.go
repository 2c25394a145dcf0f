package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/server/access"
	"capper/internal/server/failure"
)

// status serves GET /v1/status.
func (s *Server) status(c *call) error {
	now := s.clock().UTC()
	answer := api.Status{
		Time:          now.Truncate(time.Millisecond),
		Generation:    s.capper.Segments().Generation(),
		ConfigVersion: s.capper.Policy().Version,
		Store:         storeStatus(s.health(c.r)),
		Segments:      s.segments(), Config: s.configStatus(),
		InFlightUsers: s.budgets.Users.InUse(), Audit: s.journal.Status(),
	}
	answer.Segments.Missing = s.missing()
	answer.Ready = s.ready.Load() && answer.Store.State != "down" && len(answer.Segments.Missing) == 0
	if created := answer.Segments.CreatedAt; !created.IsZero() {
		age := now.Sub(created).Seconds()
		answer.GenerationAgeSeconds = &age
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

func storeStatus(h capping.Health) api.StoreStatus {
	status := api.StoreStatus{Kind: h.Kind, Path: h.Path, State: h.State, Error: h.Error, Warnings: h.Warnings}
	if h.Fleet != nil {
		status.Fleet = &api.Fleet{Instances: h.Fleet.Instances, Differing: h.Fleet.Differing, Made: h.Fleet.Made}
	}
	return status
}

// alive serves GET /healthz: the process answers.
func (s *Server) alive(c *call) error { return writeJSON(c.w, api.Probe{Status: "ok"}) }

// readiness serves GET /readyz: calls should be sent here.
func (s *Server) readiness(c *call) error {
	if !s.ready.Load() {
		return notReady("the service is starting or stopping")
	}
	if s.health(c.r).State == "down" {
		return notReady("the store is down")
	}
	if missing := s.missing(); len(missing) > 0 {
		return notReady(fmt.Sprintf("generation %s has no set %s, which the configuration needs: nobody is sent to before it is published",
			s.capper.Segments().Generation(), strings.Join(missing, ", ")))
	}
	return writeJSON(c.w, api.Probe{Status: "ready"})
}

// missing are the sets that the policy needs and the generation in use lacks.
func (s *Server) missing() []string { return s.capper.Policy().Missing(s.capper.Segments()) }

func notReady(reason string) *failure.Failure {
	f := failure.New(api.CodeUnavailable, "not ready: %s", reason)
	f.RetryAfter = time.Second
	return f
}

// scrape serves GET /metrics.
func (s *Server) scrape(c *call) error {
	promhttp.HandlerFor(s.gatherer, promhttp.HandlerOpts{}).ServeHTTP(c.w, c.r)
	return nil
}

// limits serves GET /v1/limits.
func (s *Server) limits(c *call) error {
	return writeJSON(c.w, s.Limits())
}
