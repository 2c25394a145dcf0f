package redisstore

import (
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}

func TestRemedies(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]remedy{
		"NOSCRIPT No matching script.":        {kind: kindScript, now: true},
		"MOVED 3999 127.0.0.1:6381":           {kind: kindMoved, now: true, refresh: true, addr: "127.0.0.1:6381"},
		"ASK 3999 [::1]:6381":                 {kind: kindAsk, now: true, addr: "[::1]:6381"},
		"TRYAGAIN Multiple keys request":      {kind: kindTryAgain, now: true},
		"CLUSTERDOWN The cluster is down":     {kind: kindDown, refresh: true},
		"READONLY You can't write":            {kind: kindDown, refresh: true},
		"LOADING Redis is loading":            {kind: kindDown, refresh: true},
		"CLOCKSKEW -1500 script: abc":         {kind: kindClock, off: -1500 * time.Millisecond},
		"OOM command not allowed":             {kind: kindMemory, final: true},
		"NOAUTH Authentication required.":     {kind: kindAuth, final: true},
		"ERR something else":                  {kind: kindServer, unknown: true},
		"MISCONF Errors writing to the AOF":   {kind: kindDown},
		"BUSY Redis is busy":                  {kind: kindDown},
		"NOREPLICAS Not enough good replicas": {kind: kindAcks},
	} {
		require.Equal(t, want, remedyOf(fmt.Errorf("node: %w", redisError(text))), text)
	}
	dial := &net.OpError{Op: "dial", Err: errors.New("refused")}
	require.Equal(t, remedy{kind: kindDial, refresh: true}, remedyOf(dial))
	require.Equal(t, remedy{kind: kindLost, unknown: true, refresh: true}, remedyOf(io.EOF))
	require.Equal(t, remedy{kind: kindLost, refresh: true}, remedyOf(&errUnsent{io.EOF}))
	require.Equal(t, remedy{kind: kindAcks, unknown: true, refresh: true}, remedyOf(&errAcks{0, 1}))
	require.Equal(t, remedy{}, remedyOf(nil))
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
