package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/server/gate"
	"capper/internal/server/wire"
	"capper/internal/zones"
)

// The method status serves GET /v1/status.
func (s *Server) status(c *call) error {
	now := s.clock().UTC()
	answer := api.Status{
		Time:          now.Truncate(time.Millisecond),
		Generation:    s.capper.Segments().Generation(),
		ConfigVersion: s.capper.Policy().Version, ZoneRules: zones.Version(),
		Store:    storeStatus(s.health(c)),
		Segments: s.segments(), Config: s.configStatus(),
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

// healthTimeout is the time for which a health check waits for the store.
const healthTimeout = time.Second

func (s *Server) health(c *call) capping.Health {
	ctx, cancel := context.WithTimeout(c.ctx, healthTimeout)
	defer cancel()
	h := s.capper.Store().Health(ctx)
	if shared, ok := s.limiter.(*gate.SteadyLimiter); ok && h.State == "ok" {
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

// readyGauge returns a gauge that is 1 while the response of /readyz is 200, and otherwise 0.
func (s *Server) readyGauge() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "capper_ready",
		Help: "1 while the service is ready for calls (/readyz answers 200), otherwise 0.",
	}, func() float64 {
		if !s.ready.Load() || len(s.missing()) > 0 {
			return 0
		}
		ctx, cancel := context.WithTimeout(context.Background(), healthTimeout)
		defer cancel()
		if s.capper.Store().Health(ctx).State == "down" {
			return 0
		}
		return 1
	})
}

// The method alive serves GET /healthz. GET /healthz fails only if the process must be restarted. If the store is down,
// GET /healthz succeeds, because the process recovers without a restart. The error text of GET /healthz names no cause,
// because anybody may make this call.
func (s *Server) alive(c *call) error {
	if h := s.health(c); h.NeedsRestart {
		return wire.NewFailure(api.CodeUnavailable,
			"restart required: the %s store is out of service until it is opened again; /v1/status and the log show "+
				"the reason",
			h.Kind)
	}
	return writeJSON(c.w, api.Probe{Status: "ok"})
}

// The method "readiness" serves GET /readyz, which reports whether a load balancer should route calls to this instance.
func (s *Server) readiness(c *call) error {
	if !s.ready.Load() {
		return notReady("the service is starting or stopping")
	}
	if s.health(c).State == "down" {
		return notReady("the store is down")
	}
	if missing := s.missing(); len(missing) > 0 {
		return notReady(fmt.Sprintf("generation %s has no set %s, which the configuration requires: no user is "+
			"allowed until the set is published",
			s.capper.Segments().Generation(), strings.Join(missing, ", ")))
	}
	return writeJSON(c.w, api.Probe{Status: "ready"})
}

// The method missing returns the sets that the policy requires but that the current segments generation (published
// version) does not contain.
func (s *Server) missing() []string { return s.capper.Policy().Missing(s.capper.Segments()) }

func notReady(reason string) *wire.Failure {
	return wire.NewFailure(api.CodeUnavailable, "not ready: %s", reason)
}

// The method scrape serves GET /metrics.
func (s *Server) scrape(c *call) error {
	promhttp.HandlerFor(s.gatherer, promhttp.HandlerOpts{}).ServeHTTP(c.w, c.r)
	return nil
}

// describeIDs serves GET /v1/ids.
func (s *Server) describeIDs(c *call) error {
	if s.ids == nil {
		return writeJSON(c.w, &api.IDs{Kind: api.KindDense})
	}
	return writeJSON(c.w, &api.IDs{Kind: s.ids.Kind().String(), Key: s.ids.Key().String(), Check: s.ids.Check()})
}

// The method "limits" serves GET /v1/limits.
func (s *Server) limits(c *call) error {
	return writeJSON(c.w, s.Limits())
}

// The method backup serves POST /v1/backup, which streams an archive of the store while the server processes other
// calls. If the server cannot complete the archive, it closes the connection, so that the client detects an incomplete
// archive.
func (s *Server) backup(c *call) error {
	store, ok := capping.As[capping.Archiver](s.capper.Store())
	if !ok {
		return wire.NewFailure(api.CodeConflict, "the store is in Redis, which has its own backups: see "+
			"docs/operating.md#backups")
	}
	started := false
	to := &slowWriter{w: c.w, deadline: http.NewResponseController(c.w)}
	_ = to.deadline.SetReadDeadline(time.Time{}) // an error means a connection without deadlines
	to.begin = func() {
		started = true
		c.w.Header().Set("Content-Type", "application/x-tar")
		c.w.Header().Set("Cache-Control", "no-store")
		c.w.WriteHeader(http.StatusOK)
	}
	err := store.Backup(c.ctx, to, s.capper.Policy().Channels)
	switch {
	case err == nil:
		s.audit(c, "backup", "done", "bytes", to.written)
		return nil
	case !started:
		s.audit(c, "backup", "failed")
		f := wire.NewFailure(api.CodeUnavailable, "the store could not be backed up: %s", err)
		f.RetryAfter, f.Cause = backupRetry, err
		return f
	}
	s.audit(c, "backup", "cut off", "bytes", to.written)
	s.log.ErrorContext(c.ctx, "a backup was interrupted: the received archive cannot be used", "error", err)
	panic(http.ErrAbortHandler)
}

// backupRetry is the time after which a caller may retry a backup that could not start.
const backupRetry = 10 * time.Second

// slowWriter writes a long response. If the client reads no bytes of the response for a minute, slowWriter
// disconnects the client.
type slowWriter struct {
	w        http.ResponseWriter
	deadline *http.ResponseController
	begin    func() // runs before the first byte is written
	written  int64
}

const slowestPiece = time.Minute

// Write writes the bytes p and extends the deadline of the connection.
func (s *slowWriter) Write(p []byte) (int, error) {
	if s.written == 0 {
		s.begin()
	}
	_ = s.deadline.SetWriteDeadline(time.Now().Add(slowestPiece)) // an error means a connection without deadlines
	n, err := s.w.Write(p)
	s.written += int64(n)
	return n, err
}
