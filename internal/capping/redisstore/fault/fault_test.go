package fault

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
	for text, want := range map[string]Remedy{
		"NOSCRIPT No matching script.":        {Kind: Script, Now: true},
		"MOVED 3999 127.0.0.1:6381":           {Kind: Moved, Now: true, Refresh: true, Addr: "127.0.0.1:6381"},
		"ASK 3999 [::1]:6381":                 {Kind: Ask, Now: true, Addr: "[::1]:6381"},
		"TRYAGAIN Multiple keys request":      {Kind: TryAgain, Now: true},
		"CLUSTERDOWN The cluster is down":     {Kind: Down, Refresh: true},
		"READONLY You can't write":            {Kind: Down, Refresh: true},
		"LOADING Redis is loading":            {Kind: Down, Refresh: true},
		"CLOCKSKEW -1500 script: abc":         {Kind: Clock, Off: -1500 * time.Millisecond},
		"OOM command not allowed":             {Kind: Memory, Final: true},
		"NOAUTH Authentication required.":     {Kind: Auth, Final: true},
		"ERR something else":                  {Kind: Server, Unknown: true},
		"MISCONF Errors writing to the AOF":   {Kind: Down},
		"BUSY Redis is busy":                  {Kind: Down},
		"NOREPLICAS Not enough good replicas": {Kind: Acks},
	} {
		require.Equal(t, want, Of(fmt.Errorf("node: %w", redisError(text))), text)
	}
	dial := &net.OpError{Op: "dial", Err: errors.New("refused")}
	require.Equal(t, Remedy{Kind: Dial, Refresh: true}, Of(dial))
	require.Equal(t, Remedy{Kind: Lost, Unknown: true, Refresh: true}, Of(io.EOF))
	require.Equal(t, Remedy{}, Of(nil))
}

func TestRemediesOfRepliesThatComeWithAFailover(t *testing.T) {
	t.Parallel()
	reply := func(text string) error { return fmt.Errorf("wait for replicas: %w", redisError(text)) }
	for text, want := range map[string]Remedy{
		"UNBLOCKED force unblock from blocking operation, instance state changed": {Kind: Down, Unknown: true,
			Refresh: true},
		"ERR WAIT cannot be used with replica instances. Please also note …": {Kind: Down, Unknown: true,
			Refresh: true},
		"ERR max number of clients reached": {Kind: Down},
		"ERR something else":                {Kind: Server, Unknown: true},
	} {
		require.Equal(t, want, Of(reply(text)), text)
	}
}

// TestDenialsOfAllEngines checks that permission errors are recognized in the wording of every
// engine, in a script and outside a script.
func TestDenialsOfAllEngines(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"NOPERM this user has no permissions to run the 'hget' command",
		"NOPERM User capper has no permissions to run the 'config|set' command",
		"ERR The user executing the script can't run this command or subcommand",
		"ERR ACL failure in script: User capper has no permissions to run the 'hget' command",
		"ERR ACL failure in script: No permissions to access a key",
		"ERR Unknown Redis command called from script",
		"ERR Unknown command called from script",
		"ERR unknown command 'evalsha', with args beginning with: ",
	} {
		require.True(t, IsDenial(text), text)
		require.Equal(t, Auth, Of(redisError(text)).Kind, text)
	}
	require.False(t, IsDenial("ERR Error running script"))
}
