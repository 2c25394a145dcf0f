package trace

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

const (
	queueSpans = 4096 // spans that may wait, of about a thousand bytes each
	batchSpans = 512  // spans of one request to the collector
	batchEvery = 2 * time.Second
	tellEvery  = time.Minute // least time between two log lines about failures
)

// queue holds ended spans until they are sent. queue never blocks: it drops and counts spans that exceed its
// capacity.
type queue struct {
	exporter sdk.SpanExporter
	logger   *slog.Logger
	every    time.Duration
	spans    chan sdk.ReadOnlySpan
	flush    chan chan struct{}
	stop     chan struct{}
	done     chan struct{}
	once     sync.Once

	sent, full, failed prometheus.Counter

	lost   int       // dropped spans that no log line has reported; used by the loop only
	told   time.Time // time of the last such log line; used by the loop only
	broken bool      // the last request failed; of the loop alone
	ctx    context.Context
	cancel context.CancelFunc
}

var _ sdk.SpanProcessor = (*queue)(nil)

func newQueue(exporter sdk.SpanExporter, cfg Config) (*queue, error) {
	spans := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "capper_trace_spans_total",
		Help: "Recorded trace spans by result: sent to the collector, or dropped.",
	}, []string{"result"})
	q := &queue{
		exporter: exporter, logger: cfg.Logger, every: cfg.every, spans: make(chan sdk.ReadOnlySpan, queueSpans),
		flush: make(chan chan struct{}), stop: make(chan struct{}), done: make(chan struct{}),
		sent: spans.WithLabelValues("sent"), full: spans.WithLabelValues("dropped_full"),
		failed: spans.WithLabelValues("dropped_refused"),
	}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	if cfg.Registerer != nil {
		if err := cfg.Registerer.Register(spans); err != nil {
			return nil, err
		}
	}
	go q.run()
	return q, nil
}

// OnStart implements sdk.SpanProcessor.
func (q *queue) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd adds an ended span to the queue.
func (q *queue) OnEnd(s sdk.ReadOnlySpan) {
	select {
	case q.spans <- s:
	default:
		q.full.Inc()
	}
}

// ForceFlush sends all spans in the queue.
func (q *queue) ForceFlush(ctx context.Context) error {
	sent := make(chan struct{})
	select {
	case q.flush <- sent:
	case <-q.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-sent:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Shutdown sends all spans in the queue and stops the queue. Spans that are not sent before ctx ends are lost.
func (q *queue) Shutdown(ctx context.Context) error {
	q.once.Do(func() { close(q.stop) })
	select {
	case <-q.done:
	case <-ctx.Done():
		q.cancel()
		<-q.done
	}
	return q.exporter.Shutdown(ctx)
}

// run sends a batch whenever one is full, and sends the remaining spans at regular intervals.
func (q *queue) run() {
	defer close(q.done)
	ticker := time.NewTicker(q.every)
	defer ticker.Stop()
	batch := make([]sdk.ReadOnlySpan, 0, batchSpans)
	for {
		select {
		case s := <-q.spans:
			if batch = append(batch, s); len(batch) == batchSpans {
				batch = q.send(batch)
			}
		case <-ticker.C:
			batch = q.send(batch)
		case sent := <-q.flush:
			batch = q.sendAll(batch)
			close(sent)
		case <-q.stop:
			q.sendAll(batch)
			return
		}
	}
}

// sendAll sends the batch and all spans that are in the queue.
func (q *queue) sendAll(batch []sdk.ReadOnlySpan) []sdk.ReadOnlySpan {
	for range len(q.spans) {
		if batch = append(batch, <-q.spans); len(batch) == batchSpans {
			batch = q.send(batch)
		}
	}
	return q.send(batch)
}

// send sends the batch and returns an empty batch.
func (q *queue) send(batch []sdk.ReadOnlySpan) []sdk.ReadOnlySpan {
	if len(batch) == 0 {
		return batch
	}
	err := q.exporter.ExportSpans(q.ctx, batch)
	if err == nil {
		q.sent.Add(float64(len(batch)))
	} else {
		q.failed.Add(float64(len(batch)))
		q.lost += len(batch)
	}
	q.tell(err)
	clear(batch)
	return batch[:0]
}

// tell logs, at most now and then, that the collector does not accept spans. tell also logs the recovery.
func (q *queue) tell(err error) {
	switch {
	case err != nil && (!q.broken || time.Since(q.told) >= tellEvery):
		q.logger.Warn("trace spans were dropped because the collector did not accept them; calls are not affected",
			"spans", q.lost,
			"error", err)
		q.lost, q.told = 0, time.Now()
	case err == nil && q.broken:
		q.logger.Info("the collector accepts trace spans again", "dropped", q.lost)
		q.lost = 0
	}
	q.broken = err != nil
}
