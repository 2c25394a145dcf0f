package checks

import (
	"cmp"
	"context"

	"capper/internal/doctor"
	"capper/internal/trace/otlp"
)

// tracing asks the collector whether it takes spans; it is sent none.
func tracing(s *Subject) doctor.Check {
	return doctor.Check{Name: "tracing", Look: func(ctx context.Context, n *doctor.Notes) {
		cfg := s.Config.Tracing
		if cfg.Endpoint == "" {
			n.Skip("", "tracing is not configured")
			return
		}
		cfg.Timeout = min(cmp.Or(cfg.Timeout, otlp.DefaultTimeout), doctor.DefaultTime/2)
		if err := otlp.Probe(ctx, cfg); err != nil {
			n.Warn(cfg.Endpoint, err.Error(), "start the collector, or correct tracing.endpoint: its port for OTLP "+
				"over HTTP, usually 4318; set required headers in $OTEL_EXPORTER_OTLP_HEADERS",
				"trace spans wait for the collector and are then dropped; decisions do not wait")
			return
		}
		n.OK(cfg.Endpoint, "the collector accepts trace spans")
	}}
}
