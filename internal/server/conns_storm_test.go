//go:build storms

package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/server"
)

// TestTenThousandIdleAndSlowConnections checks that other clients are served beside ten thousand idle and slow
// connections.
func TestTenThousandIdleAndSlowConnections(t *testing.T) {
	s := newService(t, func(cfg *server.Config) { cfg.Bounds.InFlightBytes = 64 << 20 })
	addr := s.start(nil)
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), crowdVariable+"="+addr)
	input, err := command.StdinPipe()
	require.NoError(t, err)
	output, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	said := bufio.NewScanner(output)
	next := func() string {
		said.Scan()
		return said.Text()
	}
	require.Equal(t, "ready", next())

	t.Logf("slowest of the calls: %s", callWhileCrowded(t, addr))
	open, err := strconv.Atoi(s.metric("capper_open_connections"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, open, crowdIdle, "those that keep still were there all the time")
	require.Equal(t, "closed", next(), "who does not send a header in time is cut off")
	require.NoError(t, input.Close())
	require.NoError(t, command.Wait())
}

// callWhileCrowded makes calls from a few clients and returns the time of the slowest.
func callWhileCrowded(t *testing.T, addr string) (slowest time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var clients sync.WaitGroup
	for client := range 4 {
		clients.Go(func() {
			for call := range 25 {
				start := time.Now()
				body := strings.NewReader(fmt.Sprintf(`{"message_id":"m","user_ids":[%d]}`, 1000+client*100+call))
				response, err := http.Post("http://"+addr+"/v1/filter", "application/json", body)
				if err == nil {
					_, err = io.Copy(io.Discard, response.Body)
					_ = response.Body.Close()
				}
				mu.Lock()
				slowest = max(slowest, time.Since(start))
				if err != nil || response.StatusCode != http.StatusOK {
					t.Errorf("call %d: %v", call, err)
				}
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	return slowest
}
