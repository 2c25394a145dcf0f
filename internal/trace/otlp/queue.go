package otlp

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"capper/internal/trace"
)

const (
	queueSpans  = 4096 // maximum number of waiting spans, with about 1,000 bytes each
	batchSpans  = 512  // maximum number of spans in a request to the collector
	batchEvery  = 2 * time.Second
	reportEvery = time.Minute // minimum time between two log lines about lost spans
)

// The type "queue" wraps the batch processor of the OpenTelemetry library, which holds ended spans until the upload. In
// addition, the type "queue" counts and logs lost spans, and stops sending after a timeout of Shutdown. The
// OpenTelemetry library does neither.
type queue struct {
	sdk.SpanProcessor
	to *upload
}

// The type "upload" sends batches of spans to the collector, and counts and logs sent and lost spans.
type upload struct {
	sdk.SpanExporter
	logger             *slog.Logger
	sent, full, failed prometheus.Counter
	waiting            atomic.Int64 // spans in the queue and in the current batch

	lost     int       // number of lost spans that no log line has reported
	reported time.Time // time of the last log line about lost spans
	broken   bool      // the last request failed
}

func newQueue(exporter sdk.SpanExporter, cfg trace.Config, every time.Duration) (*queue, error) {
	spans := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "capper_trace_spans_total",
		Help: "Trace spans by result: sent, dropped_full (full queue) or dropped_refused (rejected by the collector).",
	}, []string{"result"})
	if cfg.Registerer != nil {
		if err := cfg.Registerer.Register(spans); err != nil {
			return nil, err
		}
	}
	to := &upload{
		SpanExporter: exporter, logger: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)),
		sent: spans.WithLabelValues("sent"), full: spans.WithLabelValues("dropped_full"),
		failed: spans.WithLabelValues("dropped_refused"),
	}
	return &queue{sdk.NewBatchSpanProcessor(to, sdk.WithMaxQueueSize(queueSpans),
		sdk.WithMaxExportBatchSize(batchSpans), sdk.WithBatchTimeout(every),
		sdk.WithExportTimeout(0)), to}, nil
}

// OnEnd adds an ended span to the queue. If the queue of spans is full, OnEnd drops the span.
func (q *queue) OnEnd(s sdk.ReadOnlySpan) {
	if q.to.waiting.Add(1) > queueSpans {
		q.to.waiting.Add(-1)
		q.to.full.Inc()
		return
	}
	q.SpanProcessor.OnEnd(s)
}

// Shutdown sends all spans in the queue, and then stops the queue. If ctx ends first, the remaining spans are lost.
func (q *queue) Shutdown(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { _ = q.to.Shutdown(context.Background()) })() // aborts requests
	return q.SpanProcessor.Shutdown(ctx)
}

// ExportSpans sends a batch of spans. If sending fails, ExportSpans logs the error and returns nil, because the
// OpenTelemetry library would print a returned error.
func (u *upload) ExportSpans(ctx context.Context, batch []sdk.ReadOnlySpan) error {
	err := u.SpanExporter.ExportSpans(ctx, batch)
	u.waiting.Add(-int64(len(batch)))
	if err == nil {
		u.sent.Add(float64(len(batch)))
	} else {
		u.failed.Add(float64(len(batch)))
		u.lost += len(batch)
	}
	u.report(err)
	return nil
}

// The method "report" logs that the collector does not accept spans, at most once in the time reportEvery. The method
// also logs that the collector accepts spans again.
func (u *upload) report(err error) {
	switch {
	case err != nil && (!u.broken || time.Since(u.reported) >= reportEvery):
		u.logger.Warn("trace spans were dropped because the collector did not accept them; calls are not affected",
			"spans", u.lost, "error", err)
		u.lost, u.reported = 0, time.Now()
	case err == nil && u.broken:
		u.logger.Info("the collector accepts trace spans again", "dropped", u.lost)
		u.lost = 0
	}
	u.broken = err != nil
}
