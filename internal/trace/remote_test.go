package trace_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/trace"
)

const (
	theirs = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	rest   = "-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
)

// passedOn returns the headers to another service, for a request with the headers in to a service that does not trace.
func passedOn(t *testing.T, in http.Header) http.Header {
	t.Helper()
	ctx, _ := trace.Begin(t.Context(), nil, in, "id", time.Now())
	out := http.Header{}
	trace.Outgoing(ctx, out)
	return out
}

// The rules are those of https://www.w3.org/TR/trace-context/.
func TestTraceparent(t *testing.T) {
	t.Parallel()
	for name, parent := range map[string]string{
		"sampled": theirs, "not sampled": theirs[:54] + "0", "flags that are not known": theirs[:53] + "ff",
		"a later version": "01" + rest, "the last version": "fe" + rest, "a later version with more": "cc" + rest +
			"-what-the-future-holds",
		"a later version with nothing more": "cc" + rest + "-",
	} {
		out := passedOn(t, http.Header{"Traceparent": {parent}})
		require.Regexp(t, "^00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0[013]$", out.Get("Traceparent"), name)
		require.Equal(t, name == "not sampled", strings.HasSuffix(out.Get("Traceparent"), "0"), name)
	}
	for name, parent := range map[string]string{
		"empty": "", "version ff": "ff" + rest, "version of one digit": "0" + rest, "version in upper case": "0A" +
			rest, "no version": rest[1:],
		"version 00 with more": theirs + "-00", "version 00 with a dash": theirs + "-",
		"a later version with more, and no dash": "cc" + rest + ".x",
		"upper case":                             strings.ToUpper(theirs), "no trace": "00-" + strings.Repeat("0", 32) +
			theirs[35:], "no parent": theirs[:36] + strings.Repeat("0", 16) + "-01",
		"no flags": theirs[:52], "half of the flags": theirs[:54], "flags that are none": theirs[:53] + "0g",
		"a short trace": strings.Replace(theirs, "4bf9", "4bf", 1),
		"a long trace":  strings.Replace(theirs, "4bf9", "4bf92", 1), "other separators": strings.ReplaceAll(theirs,
			"-", "_"), "a blank before": " " + theirs, "a blank behind": theirs + " ",
	} {
		require.Empty(t, passedOn(t, http.Header{"Traceparent": {parent}, "Tracestate": {"a=b"}}), name)
	}
	require.Empty(t, passedOn(t, http.Header{"Traceparent": {theirs, theirs}}), "two of them")
	require.Empty(t, passedOn(t, http.Header{"Tracestate": {"a=b"}}), "a state of nothing")
}

func TestTracestate(t *testing.T) {
	t.Parallel()
	state := func(given ...string) string {
		return passedOn(t, http.Header{"Traceparent": {theirs}, "Tracestate": given}).Get("Tracestate")
	}
	require.Equal(t, "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", state("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"))
	require.Equal(t, "a=1,b=2", state("a=1", "b=2"), "headers of one name are one list")
	two := "a=" + strings.Repeat("x", 250) + ",b=" + strings.Repeat("y", 253) + ",c=3"
	require.Equal(t, two, state(two))
	require.Len(t, two, 512)
	require.Empty(t, state(two+"y"), "more is not passed on, and no half of it")
	require.Empty(t, state("not a state, at all"))
}

// Others are told of what came in as it came, where nothing of it is recorded here.
func TestWhatIsNotRecordedIsPassedOn(t *testing.T) {
	t.Parallel()
	in := http.Header{"Traceparent": {theirs}, "Tracestate": {"a=1", "b=2"}}
	ctx, span := trace.Begin(t.Context(), nil, in, "id", time.Now())
	require.False(t, span.IsRecording())
	below, part := trace.Start(ctx, "part")
	require.False(t, part.IsRecording())
	require.Equal(t, ctx, below)
	out := http.Header{"Tracestate": {"of=another"}}
	trace.Outgoing(ctx, out)
	require.Equal(t, http.Header{"Traceparent": {theirs}, "Tracestate": {"a=1,b=2"}}, out)

	require.Empty(t, passedOn(t, http.Header{}))
	out = http.Header{}
	trace.Outgoing(t.Context(), out)
	require.Empty(t, out, "there is nothing to be passed on")
}
