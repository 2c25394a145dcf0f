//go:build storms

package app

import (
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// TestSpansTellOfAMasterThatIsKilled kills a Redis master during a pipeline of the call. The spans show the failed
// pipeline, the retries and the node that answered, and contain no user.
func TestSpansTellOfAMasterThatIsKilled(t *testing.T) {
	t.Parallel()
	to := newReceiver(t)
	// not before it is killed
	cluster := testcluster.Start(t, testcluster.Options{Replicas: 1, NodeTimeout: 5 * time.Second})
	cfg, log := configure(t, onRedis(cluster.Addrs...)+tracedTo(to.URL, ""), "call_timeout: 1m")
	s := begin(t, cfg)
	ids := make([]string, 300) // of all nodes
	for i := range ids {
		ids[i] = strconv.Itoa(3_900_000_000 + i*1_000_003)
	}

	victim := cluster.Addrs[0]
	require.NoError(t, cluster.Pause(victim))
	answered := make(chan string, 1)
	go func() { answered <- askFor(t, s, "", strings.Join(ids, ",")) }()
	testkit.Eventually(t, func() bool { return pipelines(log.String(), "call-1") == 2 }) // to the two other masters
	require.NoError(t, cluster.Kill(victim))
	answer := <-answered
	require.Contains(t, answer, `"unavailable":[]`)
	require.Equal(t, 300, strings.Count(answer[:strings.Index(answer, "]")], ",")+1, "all are allowed: %s", answer)
	require.NoError(t, s.Stop()) // this sends the waiting spans

	failed, last := map[any]*otlp.Span{}, (*otlp.Span)(nil)
	for _, p := range to.named("PIPELINE") {
		require.Equal(t, to.named("store filter")[0].SpanId, p.ParentSpanId)
		if kind, told := attributes(p)["error.type"]; told {
			require.Equal(t, otlp.Status_STATUS_CODE_ERROR, p.Status.Code)
			failed[kind] = p
		} else if last == nil || p.StartTimeUnixNano > last.StartTimeUnixNano {
			last = p
		}
	}
	require.Contains(t, failed, "lost", "no answer came to what was sent")
	require.Equal(t, victim, addressOf(failed["lost"]))
	require.Contains(t, cluster.Addrs[3:], addressOf(last), "a replica has taken over")
	require.Greater(t, last.StartTimeUnixNano, failed["lost"].EndTimeUnixNano)

	attempts := map[string]int64{}
	for _, e := range to.named("store filter")[0].Events {
		require.Equal(t, "attempt failed", e.Name)
		told := map[string]*common.AnyValue{}
		for _, a := range e.Attributes {
			told[a.Key] = a.Value
		}
		kind := told["error.type"].GetStringValue()
		attempts[kind] = max(attempts[kind], told["capper.attempt"].GetIntValue())
	}
	if to.named("store filter")[0].DroppedEventsCount == 0 { // a span keeps only its latest events
		require.Contains(t, attempts, "lost")
	}
	require.Greater(t, slices.Max(slices.Collect(maps.Values(attempts))), int64(1), "and was tried again: %v", attempts)
	require.Empty(t, attributes(to.named("POST /v1/filter")[0])["error.type"], "the call was answered whole")
	for line := range strings.Lines(log.String()) {
		// Counts of messages and of activity are sent without a call, a few at once.
		if strings.Contains(line, `"msg":"Redis pipeline"`) && !fewUsers.MatchString(line) {
			require.Contains(t, line, `"request_id":"call-1"`)
		}
	}
	_, text := to.sent()
	for _, id := range ids {
		require.NotContains(t, text, id)
		require.NotContains(t, log.String(), id)
	}
}

// fewUsers matches the log line of a pipeline that cannot have the users of one of three masters.
var fewUsers = regexp.MustCompile(`"users":\d,`)

// pipelines returns how many pipelines of a call the log shows.
func pipelines(log, requestID string) (n int) {
	for line := range strings.Lines(log) {
		if strings.Contains(line, `"msg":"Redis pipeline"`) && strings.Contains(line, `"request_id":"`+requestID+`"`) {
			n++
		}
	}
	return n
}

func addressOf(pipeline *otlp.Span) string {
	told := attributes(pipeline)
	return net.JoinHostPort(fmt.Sprint(told["server.address"]), fmt.Sprint(told["server.port"]))
}
