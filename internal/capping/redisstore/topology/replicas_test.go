package topology

import (
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/capping/redisstore/fault"
)

func TestReplicasAreReadFromInfo(t *testing.T) {
	t.Parallel()
	online, syncing, all := fedOf(
		ParseInfo("connected_slaves:4\r\nslave0:ip=a,port=1,state=online,offset=1,lag=0\r\n" +
			"slave1:ip=a,port=2,state=wait_bgsave,offset=0\r\nslave2:ip=a,port=3,state=send_bulk,offset=0\r\n" +
			"slave3:ip=a,port=4,state=send_bulk_and_stream\r\n"))
	require.Equal(t, []fed{{"a:1", 1, 0}}, online)
	require.Equal(t, []int{3, 4}, []int{syncing, all})
}

func TestReplicasAreReadFromClusterNodes(t *testing.T) {
	t.Parallel()
	const text = "aa 10.0.0.1:6379@16379,one.example myself,master - 0 0 1 connected 0-16383\n" +
		"bb 10.0.0.2:6379@16379,two.example,shard-id=5 slave aa 0 0 1 connected\n" +
		"cc fd00::3:6380@16380 slave,fail aa 0 0 1 disconnected\n" +
		"dd 10.0.0.4:6379@16379,four.example slave ee 0 0 1 connected\n"
	require.Equal(t, []string{"10.0.0.2:6379", "[fd00::3]:6380"}, slavesOf(text, "10.0.0.1:6379"))
	require.Equal(t, []string{"two.example:6379", "[fd00::3]:6380"}, slavesOf(text, "one.example:6379"))
	alive, all := countSlaves(text)
	require.Equal(t, []int{1, 2}, []int{alive, all})
}

func TestCountSlaves(t *testing.T) {
	t.Parallel()
	nodes := `07c3 127.0.0.1:30004@31004,hostname4 slave e7d1 0 1426238317239 4 connected
67ed 127.0.0.1:30002@31002,hostname2 master - 0 1426238316232 2 connected 5461-10922
6ec2 127.0.0.1:30005@31005,hostname5 slave,fail 67ed 0 1426238316232 5 connected
824f 127.0.0.1:30006@31006,hostname6 slave,fail? e7d1 0 1426238317741 6 connected
9999 127.0.0.1:30007@31007,hostname7 slave,fail e7d1 0 1426238317741 6 disconnected
e7d1 127.0.0.1:30001@31001,hostname1 myself,master - 0 0 1 connected 0-5460
`
	alive, all := countSlaves(nodes)
	require.Equal(t, []int{2, 3}, []int{alive, all}, "suspected replicas still count, failed ones do not")
	alive, all = countSlaves("")
	require.Equal(t, []int{0, 0}, []int{alive, all})
}

func TestMostSlaves(t *testing.T) {
	t.Parallel()
	const masters = "aa 10.0.0.1:6379@16379 myself,master - 0 0 1 connected 0-8191\n" +
		"bb 10.0.0.2:6379@16379 master - 0 0 1 connected 8192-16383\n"
	require.Equal(t, 0, mostSlaves(""))
	require.Equal(t, 0, mostSlaves(masters), "nobody made replicas")
	require.Equal(t, 2, mostSlaves(masters+"cc 10.0.0.3:6379@16379 slave bb 0 0 1 connected\n"+
		"dd 10.0.0.4:6379@16379 slave,fail bb 0 0 1 disconnected\n"+
		"ee 10.0.0.5:6379@16379 slave aa 0 0 1 connected\n"))
	require.Equal(t, 1, mostSlaves(masters+"cc 10.0.0.3:6379@16379 master,fail - 0 0 1 disconnected\n"),
		"a failed master returns as a replica")
	require.Equal(t, 0, mostSlaves(masters+"cc 10.0.0.3:6379@16379 master,fail? - 0 0 1 connected 1-2\n"),
		"a suspected master may return as a master")
}

func TestReplicasAreReadFromRole(t *testing.T) {
	t.Parallel()
	replica := func(host, port, offset string) any { return []any{host, port, offset} }
	online, ok := roleOf([]any{"master", int64(90), []any{replica("fd00::3", "1", "80"), replica("two.example", "2",
		"0")}})
	require.True(t, ok)
	require.Equal(t, []fed{{"[fd00::3]:1", 80, 0}, {"two.example:2", 0, 0}}, online)
	_, ok = roleOf([]any{"master", int64(0), []any{}})
	require.True(t, ok, "a master may have none")
	for _, strange := range []any{
		nil, "OK", []any{}, []any{"slave", "127.0.0.1", int64(1), "connected", int64(9)},
		[]any{"master", int64(0), []any{"x"}}, []any{"master", int64(0), []any{replica("a", "1", "far")}},
	} {
		_, ok := roleOf(strange)
		require.False(t, ok, "%v", strange)
	}
}

func TestUncountedReplicasAreFound(t *testing.T) {
	t.Parallel()
	a, b := fed{addr: "a:1", offset: 10}, fed{addr: "b:1", offset: 10}
	hung := fed{addr: "h:1", offset: 10, lag: 20}
	moved := func(f fed) fed { return fed{addr: f.addr, offset: f.offset + 5} }
	for name, c := range map[string]struct {
		acks         int
		counted, now []fed
		uncounted    string
	}{
		"both counted":               {2, []fed{a, b}, []fed{moved(b), moved(a)}, ""},
		"one has gone":               {2, []fed{a, b}, []fed{moved(a)}, ""},
		"none":                       {1, nil, nil, ""},
		"the first":                  {1, nil, []fed{a}, "a:1"},
		"one is new":                 {1, []fed{a}, []fed{moved(a), {addr: "b:1"}}, "b:1"},
		"one in the place of one":    {1, []fed{a}, []fed{moved(b)}, "b:1"},
		"one hangs, and is not told": {1, []fed{a, b}, []fed{moved(a), b}, ""},
		"one that hung is back":      {1, []fed{hung, a}, []fed{moved(hung), moved(a)}, "h:1"},
		"behind one address":         {2, []fed{a, a}, []fed{moved(a), moved(a)}, ""},
		"one more behind it":         {2, []fed{a, a}, []fed{moved(a), moved(a), {addr: "a:1"}}, "a:1"},
	} {
		count := &Count{Acks: c.acks, fed: c.counted, named: true}
		require.Equal(t, c.uncounted, count.uncounted(c.now), name)
		require.Len(t, count.fed, len(c.counted), "it is left as it was")
	}
}

// TestRemediesOfReplicas checks that a command that may have been executed counts as unknown, and a
// retry resolves it.
func TestRemediesOfReplicas(t *testing.T) {
	t.Parallel()
	for _, err := range []error{&errAcks{0, 1}, &errUncounted{"a:1"}} {
		require.Equal(t, fault.Remedy{Kind: fault.Acks, Unknown: true, Refresh: true}, fault.Of(err))
	}
}
