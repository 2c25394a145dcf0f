package otlp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	otel "go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"capper/internal/testkit"
	"capper/internal/trace"
)

// sent is what a collector was sent, read by the protocol's own decoder.
type sent struct {
	*httptest.Server
	mu       sync.Mutex
	headers  http.Header
	requests []*collector.ExportTraceServiceRequest
}

func newCollector(t *testing.T) *sent {
	s := &sent{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		request := &collector.ExportTraceServiceRequest{}
		if err != nil || proto.Unmarshal(body, request) != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %d bytes that are no spans, %v", r.URL, len(body), err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.headers, s.requests = r.Header, append(s.requests, request)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *sent) spans() (spans []*wire.Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, request := range s.requests {
		for _, of := range request.ResourceSpans {
			for _, scope := range of.ScopeSpans {
				spans = append(spans, scope.Spans...)
			}
		}
	}
	return spans
}

func valuesOf(attributes []*common.KeyValue) map[string]any {
	values := map[string]any{}
	for _, a := range attributes {
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			values[a.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			values[a.Key] = v.IntValue
		}
	}
	return values
}

func opened(t *testing.T, cfg trace.Config) (*Exporter, *testkit.Log, *prometheus.Registry) {
	t.Helper()
	return openedEvery(t, cfg, batchEvery)
}

// openedEvery returns an exporter that sends its spans after a time of the test.
func openedEvery(t *testing.T, cfg trace.Config, every time.Duration) (
	*Exporter, *testkit.Log, *prometheus.Registry) {
	t.Helper()
	log, registry := new(testkit.Log), prometheus.NewRegistry()
	cfg.Logger, cfg.Registerer = log.Logger(), registry
	tracer, err := open(t.Context(), cfg, every)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tracer.Close(context.Background()) }) // what failed is what the test is about
	return tracer, log, registry
}

const parent, theirTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	"\x4b\xf9\x2f\x35\x77\xb3\x4d\xa6\xa3\xce\x92\x9d\x0e\x0e\x47\x36"

// from returns the headers of a caller with the traceparent and the tracestate.
func from(parent string, state ...string) http.Header {
	return http.Header{"Traceparent": {parent}, "Tracestate": state}
}

// request begins the span of a request with the headers.
func request(t *testing.T, e *Exporter, h http.Header) trace.Span {
	t.Helper()
	_, span := trace.Begin(t.Context(), e.Tracer(), h, "id", time.Now())
	return span
}

// What is recorded is what the collector reads, by the protocol's own decoder.
func TestSpansAreWhatTheCollectorReads(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20of-the-collector,X-Team=growth")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test,service.name=ignored")
	to := newCollector(t)
	tracer, log, _ := opened(t, trace.Config{Endpoint: to.URL, ServiceName: "capping", Version: "1.2.3"})
	at := time.Date(2026, 11, 20, 9, 12, 44, 120e6, time.UTC)
	ctx, root := trace.Begin(t.Context(), tracer.Tracer(), from(parent, "rojo=1,congo=2"), "id", at)
	root.SetName("POST /v1/filter")
	trace.SetText(root, "http.route", "/v1/filter")
	trace.SetText(root, "long", strings.Repeat("x", 300))
	trace.SetInt(root, "capper.users.requested", 10_000)
	_, other := trace.Begin(t.Context(), tracer.Tracer(), from(parent), "id", at)
	part := trace.StartClient(root, "PIPELINE", at.Add(time.Second), []trace.Span{other})
	trace.Event(part, "attempt failed", trace.Text("error.type", "lost"), trace.Int("capper.attempt", 1))
	trace.Fail(part, "lost")
	trace.EndAt(part, at.Add(2*time.Second))
	trace.EndAt(root, at.Add(3*time.Second))
	trace.SetText(root, "too", "late")
	_, late := trace.Start(ctx, "late")
	late.End()
	trace.EndAt(other, at)
	require.NoError(t, tracer.provider.ForceFlush(t.Context()))

	require.Equal(t, "Bearer of-the-collector", to.headers.Get("Authorization"))
	require.Equal(t, "growth", to.headers.Get("X-Team"))
	resource := valuesOf(to.requests[0].ResourceSpans[0].Resource.Attributes)
	require.Equal(t, "capping", resource["service.name"])
	require.Equal(t, "1.2.3", resource["service.version"])
	require.Equal(t, "test", resource["deployment.environment.name"])
	require.NotEmpty(t, resource["service.instance.id"])
	require.NotEmpty(t, resource["host.name"])
	spans := map[string]*wire.Span{}
	for _, s := range to.spans() {
		spans[s.Name] = s
	}
	require.Len(t, spans, 4)
	call, pipeline := spans["POST /v1/filter"], spans["PIPELINE"]
	require.Equal(t, theirTrace, string(call.TraceId))
	require.Equal(t, "\x00\xf0\x67\xaa\x0b\xa9\x02\xb7", string(call.ParentSpanId))
	require.Equal(t, "rojo=1,congo=2", call.TraceState)
	require.Equal(t, wire.Span_SPAN_KIND_SERVER, call.Kind)
	require.Equal(t, []uint64{uint64(at.UnixNano()), uint64(at.Add(3 * time.Second).UnixNano())},
		[]uint64{call.StartTimeUnixNano, call.EndTimeUnixNano})
	require.Equal(t, map[string]any{"http.route": "/v1/filter", "long": strings.Repeat("x", 256),
		"capper.users.requested": int64(10_000)}, valuesOf(call.Attributes))
	require.Equal(t, wire.Status_STATUS_CODE_UNSET, call.Status.GetCode())
	require.Equal(t, call.SpanId, pipeline.ParentSpanId)
	require.Equal(t, call.TraceId, pipeline.TraceId)
	require.Equal(t, wire.Span_SPAN_KIND_CLIENT, pipeline.Kind)
	require.Equal(t, wire.Status_STATUS_CODE_ERROR, pipeline.Status.Code)
	require.Empty(t, pipeline.Status.Message, "texts of errors may name users")
	require.Equal(t, map[string]any{"error.type": "lost"}, valuesOf(pipeline.Attributes))
	require.Equal(t, map[string]any{"error.type": "lost", "capper.attempt": int64(1)},
		valuesOf(pipeline.Events[0].Attributes))
	require.Equal(t, spans["request"].SpanId, pipeline.Links[0].SpanId)
	require.Equal(t, call.SpanId, spans["late"].ParentSpanId, "work may outlast its request")
	require.NotContains(t, log.String(), "of-the-collector")
}

// A caller's trace goes on as its own, whatever it says beside that.
func TestTracesOfCallersGoOn(t *testing.T) {
	t.Parallel()
	to := newCollector(t)
	tracer, _, _ := opened(t, trace.Config{Endpoint: to.URL, Ratio: 0})
	for _, h := range []http.Header{
		from(parent), from(parent[:53] + "ff"), from("fe" + parent[2:] + "-more"), from(parent, "not a state, at all"),
		from(parent, "a="+strings.Repeat("x", 250)+",b="+strings.Repeat("y", 250)),
	} {
		ctx, span := trace.Begin(t.Context(), tracer.Tracer(), h, "id", time.Now())
		out := http.Header{}
		trace.Outgoing(ctx, out)
		require.Regexp(t, "^"+parent[:36]+"[0-9a-f]{16}-0[13]$", out.Get("Traceparent"), h)
		require.NotEqual(t, parent[36:52], out.Get("Traceparent")[36:52], "its parent is the span here")
		require.Equal(t, strings.HasPrefix(h.Get("Tracestate"), "a="), out.Get("Tracestate") != "", h)
		span.End()
	}
}

func TestWhoIsSampled(t *testing.T) {
	t.Parallel()
	to := newCollector(t)
	recorded := func(ratio float64, h http.Header) (n int) {
		tracer, _, _ := opened(t, trace.Config{Endpoint: to.URL, Ratio: ratio})
		for range 2000 {
			if request(t, tracer, h).IsRecording() {
				n++
			}
		}
		return n
	}
	for _, ratio := range []float64{0, 0.1, 1} {
		require.Equal(t, 2000, recorded(ratio, from(parent)), "its caller records it: all of a trace or nothing")
		require.Zero(t, recorded(ratio, from(parent[:54]+"0")), "its caller does not")
	}
	require.Zero(t, recorded(0, nil))
	require.Equal(t, 2000, recorded(1, nil))
	require.InDelta(t, 200, recorded(0.1, nil), 100)
}

// A request that the service did not select asks other services not to record it.
func TestOthersAreToldThatNobodyRecords(t *testing.T) {
	t.Parallel()
	tracer, _, _ := opened(t, trace.Config{Endpoint: "http://127.0.0.1:9", Ratio: 0})
	ctx, _ := trace.Begin(t.Context(), tracer.Tracer(), http.Header{}, "id", time.Now())
	out := http.Header{}
	trace.Outgoing(ctx, out)
	require.Regexp(t, "^00-[0-9a-f]{32}-[0-9a-f]{16}-00$", out.Get("Traceparent"))
	_, span := trace.Begin(t.Context(), nil, out, "id", time.Now())
	require.True(t, span.SpanContext().IsValid())
}

func counted(t *testing.T, registry *prometheus.Registry) map[string]int {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	results := map[string]int{}
	for _, f := range families {
		for _, m := range f.Metric {
			results[m.Label[0].GetValue()] = int(m.Counter.GetValue())
		}
	}
	return results
}

// What the collector does is not the matter of who ends spans: nobody waits, so many spans
// wait at most, all others are counted, and a stop takes the time that it is given.
func TestACollectorThatFails(t *testing.T) {
	t.Parallel()
	const spans = 3 * queueSpans
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	answers := func(status int, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if len(header) > 0 {
				w.Header().Set(header[0], header[1])
			}
			w.WriteHeader(status)
		}
	}
	for name, handler := range map[string]http.HandlerFunc{
		"hangs": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // else it is not seen that the caller goes
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		},
		"fails":                  answers(http.StatusInternalServerError),
		"refuses":                answers(http.StatusUnauthorized),
		"is overloaded":          answers(http.StatusTooManyRequests),
		"is overloaded for long": answers(http.StatusTooManyRequests, "Retry-After", "3600"),
		"is away for a moment":   answers(http.StatusServiceUnavailable, "Retry-After", "1"),
		"is away":                nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := httptest.NewServer(handler)
			defer to.Close()
			if handler == nil {
				to.Close()
			}
			tracer, log, registry := opened(t,
				trace.Config{Endpoint: to.URL, Ratio: 1, Timeout: 200 * time.Millisecond})
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range spans {
					request(t, tracer, nil).End()
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_ = tracer.Close(ctx) // says so where time was up
			}()
			testkit.Receive(t, done, "somebody waits") // some 50 ms, and that second, where nothing else runs
			var got map[string]int
			testkit.Eventually(t, func() bool {
				got = counted(t, registry)
				return got["dropped_full"]+got["dropped_refused"] == spans
			})
			require.Zero(t, got["sent"])
			lines := strings.Count(log.String(), "spans were dropped")
			require.Equal(t, 1, lines, "told once a minute: %s", log.String())
		})
	}
}

// A collector that comes back is sent to again, and the log says so.
func TestACollectorThatComesBack(t *testing.T) {
	t.Parallel()
	failing := true
	var mu sync.Mutex
	to := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if failing {
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	defer to.Close()
	tracer, log, registry := openedEvery(t, trace.Config{Endpoint: to.URL, Ratio: 1}, time.Millisecond)
	request(t, tracer, nil).End()
	testkit.Eventually(t, func() bool { return counted(t, registry)["dropped_refused"] == 1 })
	mu.Lock()
	failing = false
	mu.Unlock()
	request(t, tracer, nil).End()
	testkit.Eventually(t, func() bool { return counted(t, registry)["sent"] == 1 })
	testkit.Eventually(t, func() bool {
		return strings.Contains(log.String(), "the collector accepts trace spans "+
			"again")
	})
}

// The library prints what it cannot read of these, and goes on without.
func TestHeadersThatAreNoneAreRefusedAndNotShown(t *testing.T) {
	for _, variable := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		for _, given := range []string{"Bearer secret", "X-A=1,secret", "Authori zation=secret", "=secret",
			"Authorization=secret%zz", "X-A=secret%0d%0aX-B: 1", "X-A=secret,"} {
			t.Setenv(variable, given)
			_, err := Open(t.Context(), trace.Config{Endpoint: "http://127.0.0.1:9"})
			require.ErrorContains(t, err, "$"+variable, given)
			require.NotContains(t, err.Error(), "secret")
		}
		t.Setenv(variable, "")
	}
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"http://127.0.0.1:4318":          "http://127.0.0.1:4318/v1/traces",
		"https://collector.example/":     "https://collector.example/v1/traces",
		"https://collector.example/otlp": "https://collector.example/otlp/v1/traces",
		"http://[::1]:4318/v1/traces":    "http://[::1]:4318/v1/traces",
	} {
		got, err := trace.ParseEndpoint(given)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for given, want := range map[string]string{
		"": "must begin with http:// or https://", "127.0.0.1:4318": "must begin with http:// or https://",
		"grpc://a:4317": "must begin with http:// or https://", "http://": "must begin with http:// or https://",
		"http://me:secret@a":  "must not contain a user or a password",
		"http://a?key=secret": "must end with the path", "http://a#x": "must end with the path",
		"http://a:4317": "4317 is the port for gRPC", "http://a:99999": "must have a port from 1 to 65535",
		"http://a:0/key": `got "http://a:0…"`,
	} {
		_, err := trace.ParseEndpoint(given)
		require.ErrorContains(t, err, want, given)
		_, err = Open(t.Context(), trace.Config{Endpoint: given})
		require.ErrorContains(t, err, "tracing.endpoint: ", given)
	}
	for _, given := range []string{"http://me:secret@a", "me:secret@a:4318", "http://%zz:secret@a",
		"http://a?key=secret", "http://a/#secret"} {
		_, err := trace.ParseEndpoint(given)
		require.ErrorContains(t, err, "$OTEL_EXPORTER_OTLP_HEADERS", given)
		require.NotContains(t, err.Error(), "secret")
	}
}

// stuck is an exporter that waits for its shutdown.
type stuck struct {
	stopped chan struct{}
	once    sync.Once
}

func (s *stuck) ExportSpans(context.Context, []sdk.ReadOnlySpan) error {
	<-s.stopped
	return errors.New("stopped")
}

func (s *stuck) Shutdown(context.Context) error {
	s.once.Do(func() { close(s.stopped) })
	return nil
}

// At most queueSpans spans wait, the queue counts all others, and a shutdown ends in time.
func TestTheQueueIsBounded(t *testing.T) {
	t.Parallel()
	registry, to := prometheus.NewRegistry(), &stuck{stopped: make(chan struct{})}
	q, err := newQueue(to, trace.Config{Logger: slog.New(slog.DiscardHandler), Registerer: registry}, time.Hour)
	require.NoError(t, err)
	one := tracetest.SpanStub{SpanContext: otel.SpanContext{}.WithTraceFlags(otel.FlagsSampled)}.Snapshot()
	for range 10 * queueSpans {
		q.OnEnd(one)
	}
	require.Equal(t, 9*queueSpans, counted(t, registry)["dropped_full"])
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, q.ForceFlush(ctx), context.DeadlineExceeded)
	require.ErrorIs(t, q.Shutdown(ctx), context.DeadlineExceeded)
	testkit.Eventually(t, func() bool { return counted(t, registry)["dropped_refused"] == queueSpans })
	require.NoError(t, q.ForceFlush(t.Context()), "after the end there is nothing to be sent")
}
