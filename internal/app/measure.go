package app

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"capper/internal/capping"
	"capper/internal/trace"
)

// A result is a metric label that says whether a store call decided about all, some or none of the users.
type result int

const (
	resultOK      result = iota // the store decided about all users
	resultPartial               // the store decided about some users
	resultError                 // the store decided about no user
)

var resultNames = []string{resultOK: "ok", resultPartial: "partial", resultError: "error"}

// callMetrics holds the metrics for one kind of call to the store, such as filter or release.
type callMetrics struct {
	results [3]prometheus.Counter
	seconds prometheus.Observer
}

// The type "measured" wraps a store, and measures the number and the duration of the store calls.
type measured struct {
	capping.Store
	filter, release, erase, log, messages callMetrics
}

// measuredMerger is a measured store that implements capping.Merger.
type measuredMerger struct {
	*measured
	merger capping.Merger
	merge  callMetrics
}

// The function Store wraps the argument "store". The metrics capper_store_calls_total and capper_store_call_seconds
// then count and time the store calls. The metric capper_store_state reports the state of the store. All kinds of
// stores have the metrics capper_store_*; the argument "kind" is the value of the metric label "store". Metrics that
// only one kind of store has are defined in the package of that store. If the metrics registerer is nil, Store returns
// the store unchanged.
func Store(store capping.Store, kind string, registerer prometheus.Registerer) (capping.Store, error) {
	if registerer == nil {
		return store, nil
	}
	calls := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "capper_store_calls_total",
		Help: "Number of calls from capper to its store, by result: ok, partial (some users undecided) or error.",
	}, []string{"store", "op", "result"})
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "capper_store_call_seconds",
		Help:    "Duration of calls from capper to its store, in seconds.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
	}, []string{"store", "op"})
	if err := errors.Join(registerer.Register(calls), registerer.Register(seconds),
		registerer.Register(newState(store, kind))); err != nil {
		return nil, err
	}
	of := func(op string) (m callMetrics) {
		for i, name := range resultNames {
			m.results[i] = calls.WithLabelValues(kind, op, name) // alert rules need the counter at 0
		}
		m.seconds = seconds.WithLabelValues(kind, op)
		return m
	}
	m := &measured{store, of("filter"), of("release"), of("erase"), of("log"), of("messages")}
	if merger, ok := capping.As[capping.Merger](store); ok {
		return &measuredMerger{m, merger, of("merge")}, nil
	}
	return m, nil
}

// Unwrap returns the wrapped store.
func (m *measured) Unwrap() capping.Store { return m.Store }

func (m *callMetrics) observe(began time.Time, span trace.Span, r result) {
	if r != resultOK {
		trace.Fail(span, resultNames[r])
	}
	span.End()
	m.results[r].Inc()
	m.seconds.Observe(time.Since(began).Seconds())
}

// resultOf returns, as a metric label, the result of a store call that returned err. The argument "decided" is a
// function that reports whether the store decided at least one user in spite of an error.
func resultOf(err error, decided func() bool) result {
	switch {
	case err == nil:
		return resultOK
	case decided():
		return resultPartial
	}
	return resultError
}

func nothing() bool { return false }

func (m *measured) Filter(ctx context.Context, b *capping.Batch, verdicts []capping.Verdict) error {
	ctx, span := trace.Start(ctx, "store filter")
	trace.SetInt(span, "capper.users", len(b.Users))
	began := time.Now()
	err := m.Store.Filter(ctx, b, verdicts)
	m.filter.observe(began, span, resultOf(err, func() bool {
		return slices.ContainsFunc(verdicts, func(v capping.Verdict) bool { return v.Outcome != capping.Unavailable })
	}))
	return err
}

func (m *measuredMerger) Merge(ctx context.Context, merge *capping.Merge, merged []capping.Merged) error {
	ctx, span := trace.Start(ctx, "store merge")
	began := time.Now()
	err := m.merger.Merge(ctx, merge, merged)
	m.merge.observe(began, span, resultOf(err, func() bool {
		return slices.ContainsFunc(merged, func(one capping.Merged) bool { return one.Done })
	}))
	return err
}

func (m *measured) Release(ctx context.Context, token capping.Token, channel capping.Channel, users []capping.UserID,
	released []capping.Released) error {
	ctx, span := trace.Start(ctx, "store release")
	trace.SetInt(span, "capper.users", len(users))
	began := time.Now()
	err := m.Store.Release(ctx, token, channel, users, released)
	m.release.observe(began, span, resultOf(err, func() bool {
		return slices.ContainsFunc(released, func(r capping.Released) bool { return r != capping.ReleaseUnavailable })
	}))
	return err
}

func (m *measured) Erase(ctx context.Context, user capping.UserID) error {
	ctx, span := trace.Start(ctx, "store erase")
	began := time.Now()
	err := m.Store.Erase(ctx, user)
	m.erase.observe(began, span, resultOf(err, nothing))
	return err
}

func (m *measured) Log(ctx context.Context, user capping.UserID) (capping.Log, error) {
	ctx, span := trace.Start(ctx, "store log")
	began := time.Now()
	log, err := m.Store.Log(ctx, user)
	m.log.observe(began, span, resultOf(err, nothing))
	return log, err
}

func (m *measured) Messages(ctx context.Context, tokens []capping.Token) (map[capping.Token]capping.Message, error) {
	ctx, span := trace.Start(ctx, "store messages")
	began := time.Now()
	found, err := m.Store.Messages(ctx, tokens)
	m.messages.observe(began, span, resultOf(err, func() bool { return len(found) > 0 }))
	return found, err
}
