//go:build storms

package publish

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/objects/objectstest"
	"capper/internal/objects/s3test"
	"capper/internal/segments/segmentstest"
)

// runDoomed runs the publisher process; killed reports whether a signal ended it.
func runDoomed(t *testing.T, location string, step, chunks int, env ...string) (cmd *exec.Cmd, output *bytes.Buffer) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), doomedLocation+"="+location, fmt.Sprintf("%s=%d", doomedStep, step),
		fmt.Sprintf("%s=%d", doomedChunks, chunks))
	cmd.Env = append(cmd.Env, env...)
	output = &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = output, output
	require.NoError(t, cmd.Start())
	return cmd, output
}

func wasKilled(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}

func TestKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, location string, store objects.Location) {
		clock := segmentstest.Stepping()
		first := publish(t, store, clock, []string{"vip", "new"}, bitmap.Of(1, 2), bitmap.Of(3))
		target := doomedCandidate(2)
		steps, stride := eachStep(location)
		wentLive := 0
		for ; ; steps += stride {
			require.Less(t, steps, 100)
			cmd, output := runDoomed(t, location, steps, 2)
			err := cmd.Wait()
			g := live(t, store) // reads and checks everything
			isNew := sameSegments(g.Manifest.Segments, target.Describe())
			if !isNew {
				require.Equal(t, first.Segments, g.Manifest.Segments, "step %d", steps)
			} else {
				wentLive++
			}
			if err == nil {
				require.True(t, isNew)
				break
			}
			require.True(t, wasKilled(err), "step %d: %v\n%s", steps, err, output)

			// The next run succeeds.
			next := publish(t, store, clock, target.Names, target.Bitmaps...)
			require.Equal(t, next.Segments, live(t, store).Manifest.Segments, "after step %d", steps)
			collect(t, store, 1)
			publish(t, store, clock, []string{"vip", "new"}, bitmap.Of(1, 2), bitmap.Of(3))
			collect(t, store, 1)
		}
		require.GreaterOrEqual(t, steps, 2*(2+1+1), "two bitmaps, the manifest and current.json, before and after each")
		require.Positive(t, wentLive)
	})
}

// killingProxy forwards bytes to the S3 server and calls kill after the client has sent limit bytes.
func killingProxy(t *testing.T, limit int64, kill func()) (endpoint string) {
	t.Helper()
	server, err := url.Parse(os.Getenv("AWS_ENDPOINT_URL_S3"))
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	var sent atomic.Int64
	var once sync.Once
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", server.Host)
			if err != nil {
				client.Close()
				return
			}
			go func() { _, _ = io.Copy(client, upstream); client.Close() }()
			go func() {
				defer upstream.Close()
				buffer := make([]byte, 32<<10)
				for {
					n, err := client.Read(buffer)
					if err != nil {
						return
					}
					if _, err := upstream.Write(buffer[:n]); err != nil {
						return
					}
					if sent.Add(int64(n)) > limit {
						once.Do(kill)
					}
				}
			}()
		}
	}()
	return "http://" + listener.Addr().String()
}

func TestKilledInTheMiddleOfAnUpload(t *testing.T) {
	t.Parallel()
	location := "s3://" + s3test.Bucket(t) + "/prod"
	store := objectstest.Open(t, location)
	first := publish(t, store, segmentstest.Stepping(), []string{"vip", "new"}, bitmap.Of(1, 2), bitmap.Of(3))
	const chunks = 1500 // 12 MB: several parts
	for _, limit := range []int64{100 << 10, 9 << 20} {
		var cmd atomic.Pointer[exec.Cmd]
		killed := make(chan struct{})
		endpoint := killingProxy(t, limit, func() {
			_ = cmd.Load().Process.Kill()
			close(killed)
		})
		started, output := runDoomed(t, location, -1, chunks, "AWS_ENDPOINT_URL_S3="+endpoint)
		cmd.Store(started)
		require.True(t, wasKilled(started.Wait()), "limit %d: %s", limit, output)
		<-killed
		require.Equal(t, first, live(t, store).Manifest)
	}
	done, output := runDoomed(t, location, -1, chunks)
	require.NoError(t, done.Wait(), output.String())
	require.Equal(t, doomedCandidate(chunks).Describe(), live(t, store).Manifest.Segments)
}
