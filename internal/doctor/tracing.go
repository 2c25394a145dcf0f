package doctor

import (
	"cmp"
	"context"

	"capper/internal/trace"
	"capper/internal/trace/otlp"
)

// The function "tracing" checks whether the collector of trace spans accepts requests. The check sends no spans.
func tracing(s *Subject) check {
	return check{Name: "tracing", Look: func(ctx context.Context, n *notes) {
		cfg := s.Config.Tracing
		if cfg.Endpoint == "" {
			n.Skip("", "tracing is not configured")
			return
		}
		cfg.Timeout = min(cmp.Or(cfg.Timeout, trace.DefaultTimeout), defaultTime/2)
		if err := otlp.Probe(ctx, cfg); err != nil {
			n.Warn(cfg.Endpoint, err.Error(), "start the collector, or correct tracing.endpoint: its port for OTLP "+
				"over HTTP, usually 4318; set required headers in $OTEL_EXPORTER_OTLP_HEADERS",
				"trace spans wait for the collector and are then dropped; decisions do not wait")
			return
		}
		n.OK(cfg.Endpoint, "the collector accepts trace spans")
	}}
}
