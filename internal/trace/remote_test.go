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

// The rules are those of https://www.w3.org/TR/trace-context/.
func TestTraceparent(t *testing.T) {
	t.Parallel()
	for name, parent := range map[string]string{
		"sampled": theirs, "not sampled": theirs[:54] + "0", "flags that are not known": theirs[:53] + "ff",
		"a later version": "01" + rest, "the last version": "fe" + rest, "a later version with more": "cc" + rest +
			"-what-the-future-holds",
		"a later version with nothing more": "cc" + rest + "-",
	} {
		got := trace.Incoming(http.Header{"Traceparent": {parent}})
		require.Equal(t, trace.Remote{Parent: parent}, got, name)
		require.Equal(t, name != "not sampled", got.Sampled(), name)
		id, span, _ := got.IDs()
		require.Equal(t, [16]byte{0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e,
			0x47, 0x36}, id, name)
		require.Equal(t, [8]byte{0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7}, span, name)
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
		"too long": "cc" + rest + "-" + strings.Repeat("x", 512),
	} {
		got := trace.Incoming(http.Header{"Traceparent": {parent}, "Tracestate": {"a=b"}})
		require.Zero(t, got, name)
		require.False(t, got.Sampled(), name)
	}
	require.Zero(t, trace.Incoming(http.Header{"Traceparent": {theirs, theirs}}), "two of them")
	require.Zero(t, trace.Incoming(http.Header{"Tracestate": {"a=b"}}), "a state of nothing")
}

func TestTracestate(t *testing.T) {
	t.Parallel()
	state := func(given ...string) string {
		return trace.Incoming(http.Header{"Traceparent": {theirs}, "Tracestate": given}).State
	}
	require.Equal(t, "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", state("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"))
	require.Equal(t, "a=1,b=2", state("a=1", "b=2"), "headers of one name are one list")
	require.Len(t, state("a="+strings.Repeat("x", 510)), 512)
	require.Empty(t, state("a="+strings.Repeat("x", 511)), "more is not passed on, and no half of it")
}

// Others are told of what came in as it came, where nothing of it is recorded here.
func TestWhatIsNotRecordedIsPassedOn(t *testing.T) {
	t.Parallel()
	in := http.Header{"Traceparent": {theirs}, "Tracestate": {"a=1", "b=2"}}
	ctx, span := trace.Begin(t.Context(), nil, in, "id", time.Now())
	require.Nil(t, span)
	part, none := trace.Start(ctx, "part")
	require.Nil(t, none)
	require.Equal(t, ctx, part)
	out := http.Header{"Tracestate": {"of=another"}}
	trace.Outgoing(ctx, out)
	require.Equal(t, http.Header{"Traceparent": {theirs}, "Tracestate": {"a=1,b=2"}}, out)

	for _, ctx := range []func() http.Header{
		func() http.Header { out := http.Header{}; trace.Outgoing(t.Context(), out); return out },
		func() http.Header {
			ctx, _ := trace.Begin(t.Context(), nil, http.Header{}, "id", time.Now())
			out := http.Header{}
			trace.Outgoing(ctx, out)
			return out
		},
	} {
		require.Empty(t, ctx(), "there is nothing to be passed on")
	}
}

type never struct{}

func (never) Begin(trace.Remote, time.Time) *trace.Span { return nil }

func TestOthersAreToldThatNobodyRecords(t *testing.T) {
	t.Parallel()
	ctx, _ := trace.Begin(t.Context(), never{}, http.Header{}, "id", time.Now())
	out := http.Header{}
	trace.Outgoing(ctx, out)
	require.Regexp(t, "^00-[0-9a-f]{32}-[0-9a-f]{16}-00$", out.Get("Traceparent"))
	require.NotZero(t, trace.Incoming(out))
}

// What is taken is 55 bytes that a strict reader takes, and none of it gets lost on the way out.
func FuzzTraceparent(f *testing.F) {
	for _, seed := range []string{theirs, "ff" + rest, "cc" + rest + "-x", strings.ToUpper(theirs), "", "00-" +
		strings.Repeat("0", 32) + "-" + strings.Repeat("0", 16) + "-01"} {
		f.Add(seed, "a=b")
	}
	f.Fuzz(func(t *testing.T, parent, state string) {
		got := trace.Incoming(http.Header{"Traceparent": {parent}, "Tracestate": {state}})
		if got.Parent == "" {
			require.Zero(t, got)
			return
		}
		require.Equal(t, parent, got.Parent)
		require.Regexp(t, `^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}`, parent)
		id, span, flags := got.IDs()
		require.NotZero(t, id)
		require.NotZero(t, span)
		require.Equal(t, flags&1 == 1, got.Sampled())
		ctx, _ := trace.Begin(t.Context(), nil, http.Header{"Traceparent": {parent}, "Tracestate": {state}}, "id",
			time.Now())
		out := http.Header{}
		trace.Outgoing(ctx, out)
		require.Equal(t, got, trace.Incoming(out))
	})
}
