package server

import (
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"capper/internal/capping"
)

// Config is what a Server is made of.
type Config struct {
	// Capper decides. Required.
	Capper *capping.Capper
	// Segments and ConfigStatus answer what /v1/status shows. They are called
	// by many goroutines. Nil: nothing is shown.
	Segments     func() SegmentsStatus
	ConfigStatus func() ConfigStatus
	// Logger takes what callers are not told. Nil: it is discarded.
	Logger *slog.Logger
	// Registerer takes the server's metrics, Gatherer is what /metrics shows.
	// Nil: a registry of the server's own.
	Registerer prometheus.Registerer
	Gatherer   prometheus.Gatherer
	// Bounds protect the service; zero fields have the defaults written there.
	Bounds Bounds
	// Access says who may call and how fast. Zero: everybody, at any rate,
	// which is for loopback listeners only. SetAccess changes it later.
	Access Access
	// Limiter keeps the callers' rates, for all instances; while it fails, and
	// when it is nil, each process keeps its own.
	Limiter Limiter
	// AdminSeparate: /metrics and the calls of the admin scope are served by
	// Admin only. False: Public serves them too.
	AdminSeparate bool
	// HostNames are the names, beside localhost and loopback addresses, by which
	// a listener on a loopback address may be called.
	HostNames []string
	// Clock must be the one of the Capper. Nil: time.Now.
	Clock func() time.Time
}

// Bounds protect the service from what callers send. A zero field stands for
// its default.
type Bounds struct {
	JSONUsers     int           // most ids in user_ids; 100,000
	BitmapUsers   int           // most ids in users_bitmap; 1,000,000
	BodyBytes     int64         // largest body, before and after decompression; 16 MiB
	InFlightUsers int           // users of all calls being decided at one time; 4,000,000. A larger single batch is let in alone
	InFlightBytes int64         // of bodies, as received and while they are decoded, at one time; 512 MiB
	AnswerBytes   int64         // of answers being made and written at one time; 512 MiB
	GzipRatio     int           // bytes that a byte of gzip may stand for, beyond 4 MiB; 100
	MinRate       int64         // bytes per second at which bodies must come and answers be taken, after 10 s; 64 KiB
	Connections   int           // open at one time, of each listener; 16,384
	CallTimeout   time.Duration // for a call to the store, and as much again for every 250,000 users; 5 s
}

func (b Bounds) withDefaults() Bounds {
	orDefault(&b.JSONUsers, 100_000)
	orDefault(&b.BitmapUsers, 1_000_000)
	orDefault(&b.BodyBytes, 16<<20)
	orDefault(&b.InFlightUsers, 4_000_000)
	orDefault(&b.InFlightBytes, 512<<20)
	orDefault(&b.AnswerBytes, 512<<20)
	orDefault(&b.GzipRatio, 100)
	orDefault(&b.MinRate, 64<<10)
	orDefault(&b.Connections, 16_384)
	orDefault(&b.CallTimeout, 5*time.Second)
	return b
}

// usersPerTimeout is how many users make a call to the store one CallTimeout
// longer: at 5 s, 20 µs each.
const usersPerTimeout = 250_000

func (b Bounds) timeout(users int) time.Duration {
	return b.CallTimeout + time.Duration(float64(users)/usersPerTimeout*float64(b.CallTimeout))
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (c Config) withDefaults() (Config, error) {
	if c.Capper == nil {
		return c, errors.New("server: Config.Capper is missing")
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
		c.Segments = func() SegmentsStatus { return SegmentsStatus{} }
	}
	if c.ConfigStatus == nil {
		c.ConfigStatus = func() ConfigStatus { return ConfigStatus{} }
	}
	c.Bounds = c.Bounds.withDefaults()
	if c.Limiter == nil {
		c.Limiter = NewLimiter(c.Clock)
		return c, nil
	}
	var err error
	c.Limiter, err = newSteadyLimiter(c.Limiter, c.Clock, c.Logger, c.Registerer)
	return c, err
}
