package server

import (
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"capper/client/api"
	"capper/internal/audience"
	"capper/internal/capping"
	"capper/internal/pacing"
	"capper/internal/segments"
	"capper/internal/server/access"
	"capper/internal/server/admission"
	"capper/internal/server/lookup"
)

// Config is what a Server is made of.
type Config struct {
	// Capper decides. Required.
	Capper *capping.Capper
	// Generations pins generations, for look-ups and audiences. Nil: there is none that
	// could be asked.
	Generations lookup.Pin
	// Audiences are the expressions of the configuration in force. It is called by many
	// goroutines. Nil: there are none.
	Audiences func() *audience.Named
	// Pacers give permits. Nil: none are configured.
	Pacers *pacing.Pacers
	// Segments and ConfigStatus answer what /v1/status shows. They are called
	// by many goroutines. Nil: nothing is shown.
	Segments     func() api.SegmentsStatus
	ConfigStatus func() api.ConfigStatus
	// Logger takes what callers are not told. Nil: it is discarded.
	Logger *slog.Logger
	// Registerer takes the server's metrics, Gatherer is what /metrics shows.
	// Nil: a registry of the server's own.
	Registerer prometheus.Registerer
	Gatherer   prometheus.Gatherer
	// Bounds protect the service; zero fields have the defaults written there.
	Bounds admission.Bounds
	// Access says who may call and how fast. Zero: everybody, at any rate,
	// which is for loopback listeners only. SetAccess changes it later.
	Access access.Rules
	// Limiter keeps the callers' rates, for all instances; while it fails, and
	// when it is nil, each process keeps its own.
	Limiter capping.RateLimiter
	// AdminSeparate: /metrics and the calls of the admin scope are served by
	// Admin only. False: Public serves them too.
	AdminSeparate bool
	// HostNames are the names, beside localhost and loopback addresses, by which
	// a listener on a loopback address may be called.
	HostNames []string
	// Clock must be the one of the Capper. Nil: time.Now.
	Clock func() time.Time
}

func (c Config) withDefaults() (Config, error) {
	if c.Capper == nil {
		return c, errors.New("server: Config.Capper is missing")
	}
	if c.Pacers == nil {
		c.Pacers = pacing.New(nil, nil) // which never asks its store
	}
	if c.Generations == nil {
		c.Generations = func(string) (*segments.Snapshot, error) { return nil, &segments.GoneError{} }
	}
	if c.Audiences == nil {
		c.Audiences = func() *audience.Named { return nil }
	}
	if (c.Registerer == nil) != (c.Gatherer == nil) {
		return c, errors.New("server: Config.Registerer and Config.Gatherer go together")
	}
	if c.Registerer == nil {
		registry := prometheus.NewRegistry()
		c.Registerer, c.Gatherer = registry, registry
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Segments == nil {
		c.Segments = func() api.SegmentsStatus { return api.SegmentsStatus{} }
	}
	if c.ConfigStatus == nil {
		c.ConfigStatus = func() api.ConfigStatus { return api.ConfigStatus{} }
	}
	c.Bounds = c.Bounds.WithDefaults()
	if c.Limiter == nil {
		c.Limiter = access.NewLimiter(c.Clock)
		return c, nil
	}
	var err error
	c.Limiter, err = access.NewSteadyLimiter(c.Limiter, c.Clock, c.Logger, c.Registerer)
	return c, err
}
