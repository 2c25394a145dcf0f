package app

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// receiver is a collector that stores the received spans.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	text  string
	spans []*otlp.Span
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		var sent collector.ExportTraceServiceRequest
		if err != nil || q.URL.Path != "/v1/traces" || proto.Unmarshal(body, &sent) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.text += protojson.Format(&sent)
		for _, of := range sent.ResourceSpans {
			for _, scope := range of.ScopeSpans {
				r.spans = append(r.spans, scope.Spans...)
			}
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// sent returns all spans received so far, and their text with numbers in decimal digits.
func (r *receiver) sent() ([]*otlp.Span, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.spans), r.text
}

// tree returns the names of the spans below the one with the given id, indented.
func (r *receiver) tree(parent []byte, indent string) (lines []string) {
	spans, _ := r.sent()
	for _, s := range spans {
		if bytes.Equal(s.ParentSpanId, parent) {
			lines = append(lines, indent+s.Name)
			lines = append(lines, r.tree(s.SpanId, indent+" ")...)
		}
	}
	return lines
}

func (r *receiver) named(name string) (found []*otlp.Span) {
	spans, _ := r.sent()
	for _, s := range spans {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

func attributes(s *otlp.Span) map[string]any {
	told := map[string]any{}
	for _, a := range s.Attributes {
		if text := a.Value.GetStringValue(); text != "" {
			told[a.Key] = text
		} else {
			told[a.Key] = int(a.Value.GetIntValue())
		}
	}
	return told
}

const theirTrace, theirSpan = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"

// ask makes a filter call for users whose ids appear nowhere else.
func ask(t *testing.T, s *Service, parent string) {
	t.Helper()
	askFor(t, s, parent, "3912345671,3912345672,7")
}

// askFor makes a filter call for the users and returns the answer.
func askFor(t *testing.T, s *Service, parent, users string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Addr().String()+"/v1/filter",
		strings.NewReader(`{"message_id":"secret-campaign","channel":"push","user_ids":[`+users+`]}`))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Request-Id", "call-1")
	if parent != "" {
		r.Header.Set("Traceparent", parent)
	}
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, "call-1", answer.Header.Get("X-Request-Id"))
	return string(body)
}

func tracedTo(url, more string) string {
	return "\nlog: {level: debug, format: json}\ntracing: {endpoint: '" + url + "'" + more + "}"
}

func TestACallIsTracedOverTheEmbeddedStore(t *testing.T) {
	t.Parallel()
	to := newReceiver(t)
	cfg, log := configure(t, onEmbedded(t.TempDir())+tracedTo(to.URL, ", sample_ratio: 0"), "")
	s := begin(t, cfg)
	ask(t, s, "00-"+theirTrace+"-"+theirSpan+"-01") // the first call, because a replay has nothing to sync
	for _, parent := range []string{
		"", "00-" + theirTrace + "-" + theirSpan + "-00", "00-" + theirTrace + "-" + theirSpan, "ff-" + theirTrace +
			"-" + theirSpan + "-01",
		"00-" + strings.Repeat("0", 32) + "-" + theirSpan + "-01",
	} {
		ask(t, s, parent)
	}
	require.NoError(t, s.Stop()) // this sends the waiting spans
	require.Equal(t, []string{
		"POST /v1/filter", " decode", " admit", " look up segments", " store filter", "  judge and write", "  sync",
		" write answer",
	}, to.tree([]byte("\x00\xf0\x67\xaa\x0b\xa9\x02\xb7"), ""), "one call is recorded, as its caller says so")
	spans, text := to.sent()
	require.Len(t, spans, 8)
	root := to.named("POST /v1/filter")[0]
	told := attributes(root)
	require.Equal(t, "call-1", told["capper.request_id"])
	require.Equal(t, "/v1/filter", told["http.route"])
	require.Equal(t, "POST", told["http.request.method"])
	require.Equal(t, "http", told["url.scheme"])
	require.Equal(t, 200, told["http.response.status_code"])
	require.Equal(t, 3, told["capper.users.requested"])
	require.Equal(t, otlp.Span_SPAN_KIND_SERVER, root.Kind)
	for _, secret := range []string{"3912345671", "3912345672", "secret-campaign"} {
		require.NotContains(t, text, secret)
	}
	require.Contains(t, log.String(), `"msg":"batch decided"`)
	require.Contains(t, log.String(), `"request_id":"call-1","trace_id":"`+theirTrace+`"`)
	require.NotContains(t, log.String(), "391234567")
}

func TestEachNodesPipelineIsASpan(t *testing.T) {
	t.Parallel()
	to := newReceiver(t)
	cluster := testcluster.Start(t, testcluster.Options{})
	cfg, _ := configure(t, onRedis(cluster.Addrs...)+tracedTo(to.URL, ", message_ids: true"), "")
	s := begin(t, cfg)
	ask(t, s, "")
	require.NoError(t, s.Stop())
	pipelines := to.named("PIPELINE")
	require.NotEmpty(t, pipelines)
	for _, p := range pipelines {
		told := attributes(p)
		require.Equal(t, "redis", told["db.system.name"])
		require.Equal(t, "127.0.0.1", told["server.address"])
		require.NotZero(t, told["server.port"])
		require.Equal(t, otlp.Span_SPAN_KIND_CLIENT, p.Kind)
		require.Equal(t, to.named("store filter")[0].SpanId, p.ParentSpanId)
	}
	require.Equal(t, "secret-campaign", attributes(to.named("POST /v1/filter")[0])["capper.message_id"],
		"as it was asked for")
	_, text := to.sent()
	require.NotContains(t, text, "391234567")
}

// TestCallsDoNotWaitForTheCollector checks that a collector's failures do not affect callers, and are counted and
// logged.
func TestCallsDoNotWaitForTheCollector(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	for name, handler := range map[string]http.HandlerFunc{
		"hanging": func(http.ResponseWriter, *http.Request) { <-hang },
		"faulty":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"away":    nil,
	} {
		to := httptest.NewServer(handler)
		if handler == nil {
			to.Close()
		}
		cfg, log := configure(t, onEmbedded(t.TempDir())+tracedTo(to.URL, ", timeout: 100ms"), "")
		s := begin(t, cfg)
		ask(t, s, "")
		require.NoError(t, s.Stop(), name)
		require.Contains(t, log.String(), "spans were dropped", name)
		families, err := s.registry.Gather()
		require.NoError(t, err)
		dropped := 0.0
		for _, f := range families {
			if f.GetName() == "capper_trace_spans_total" {
				for _, m := range f.Metric {
					if m.Label[0].GetValue() == "dropped_refused" {
						dropped = m.Counter.GetValue()
					}
				}
			}
		}
		require.NotZero(t, dropped, name)
	}
	close(hang)
}

// TestTheLevelOfTheLogIsReloaded checks that a changed log level applies while calls are answered.
func TestTheLevelOfTheLogIsReloaded(t *testing.T) {
	t.Parallel()
	cfg, log := configure(t, onEmbedded(t.TempDir())+"\nlog: {level: info}", "")
	s := begin(t, cfg)
	ask(t, s, "")
	require.NotContains(t, log.String(), "batch decided")
	rewrite := func(from, to string) {
		file := cfg.Watcher.File()
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(text), from)
		replace(t, file, strings.Replace(string(text), from, to, 1))
	}
	rewrite("level: info", "level: debug")
	testkit.Eventually(t, func() bool { return strings.Contains(log.String(), "configuration in force") })
	ask(t, s, "")
	testkit.Eventually(t, func() bool { return strings.Contains(log.String(), "batch decided") })
	rewrite("level: debug", "level: debug, format: json")
	testkit.Eventually(t, func() bool { return strings.Contains(log.String(), "log.format: requires a restart") })
}
