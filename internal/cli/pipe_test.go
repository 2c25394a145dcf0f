package cli

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client"
)

// channel is a pipe in memory, by the clock of a bubble, and an outlet.
type channel struct {
	mu     sync.Mutex
	text   bytes.Buffer
	closed bool
	reads  []time.Time // when each line was read
}

func (c *channel) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, syscall.EPIPE
	}
	return c.text.Write(p)
}

func (c *channel) drained(most time.Duration) (int, error) {
	for end := time.Now().Add(most); ; {
		c.mu.Lock()
		unread, closed := c.text.Len(), c.closed
		c.mu.Unlock()
		switch {
		case unread == 0:
			return 0, nil
		case closed:
			return unread, syscall.EPIPE
		case !time.Now().Before(end):
			return unread, nil
		}
		<-time.NewTimer(time.Millisecond).C
	}
}

func (c *channel) restore() {}

// read takes all bytes of the channel, or at most so many.
func (c *channel) read(most int) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := c.text.Next(most)
	for range bytes.Count(text, []byte{'\n'}) {
		c.reads = append(c.reads, time.Now())
	}
	return len(text)
}

// paced100 allows 100 lines in any second.
func paced100() take {
	var given []time.Time
	return func(ctx context.Context, most int) (client.Start, error) {
		for {
			now := time.Now()
			for len(given) > 0 && now.Sub(given[0]) >= time.Second {
				given = given[1:]
			}
			if n := min(most, 100-len(given)); n > 0 {
				for range n {
					given = append(given, now)
				}
				return client.Start{Permits: n, Until: now.Add(time.Second)}, nil
			}
			timer := time.NewTimer(given[0].Add(time.Second).Sub(now))
			select {
			case <-timer.C:
			case <-ctx.Done():
				return client.Start{}, ctx.Err()
			}
		}
	}
}

// A reader that hangs and goes on reads no more lines in a second than the pacer allows. The hangs are longer than a
// window and the time of a permit, so that no line was written while the reader was about to go on.
func TestLinesThatAreReadLateTakePermitsOfThen(t *testing.T) {
	t.Parallel()
	for _, hang := range []time.Duration{0, 2500 * time.Millisecond, 3 * time.Second, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			pipe := &channel{}
			copied := &Copy{From: bytes.NewBufferString(lines(1000)), To: pipe, Outlet: pipe, Take: paced100(),
				Reached: func(int64) {}}
			ended := make(chan error, 1)
			go func() { ended <- copied.Run(t.Context()) }()
			for hangs := 0; ; {
				select {
				case err := <-ended:
					require.NoError(t, err)
					require.EqualValues(t, 1000, copied.Lines())
					require.Zero(t, copied.Unread())
					most, first := 0, 0
					for i, at := range pipe.reads {
						for at.Sub(pipe.reads[first]) >= time.Second-5*time.Millisecond { // reads are some ms late
							first++
						}
						most = max(most, i-first+1)
					}
					require.LessOrEqual(t, most, 100, "a hang of %v", hang)
					return
				case <-time.NewTimer(time.Millisecond).C:
				}
				pipe.read(1 << 20)
				if len(pipe.reads) > 150*(hangs+1) && hangs < 4 {
					hangs++
					<-time.NewTimer(hang).C
				}
			}
		})
	}
}

func lines(n int) string {
	var text bytes.Buffer
	for i := range n {
		fmt.Fprintln(&text, i)
	}
	return text.String()
}

// The count is of the lines that were read whole, whenever the reader goes away or the copy is stopped.
func TestOnlyLinesThatWereReadCount(t *testing.T) {
	t.Parallel()
	text := lines(300)
	for most := range 200 {
		for _, dies := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				pipe := &channel{}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				copied := &Copy{From: bytes.NewBufferString(text), To: pipe, Outlet: pipe,
					Reached: func(int64) {},
					Take: func(_ context.Context, most int) (client.Start, error) {
						return client.Start{Permits: min(most, 40), Until: time.Now().Add(time.Second)}, ctx.Err()
					}}
				ended := make(chan error, 1)
				go func() { ended <- copied.Run(ctx) }()
				for left := most; left > 0; <-time.NewTimer(time.Millisecond).C {
					left -= pipe.read(left)
				}
				<-time.NewTimer(5 * time.Second).C
				if dies {
					pipe.mu.Lock()
					pipe.closed = true
					pipe.mu.Unlock()
					err := <-ended
					require.ErrorIs(t, err, syscall.EPIPE)
					require.ErrorAs(t, err, new(*writeError))
				} else {
					stop()
					require.ErrorIs(t, <-ended, context.Canceled)
				}
				require.EqualValues(t, bytes.Count([]byte(text[:most]), []byte{'\n'}), copied.Lines())
				rest := bytes.Count(pipe.text.Bytes(), []byte{'\n'})
				require.EqualValues(t, rest, copied.Unread())
			})
		}
	}
}

// The age of a permit counts from when it was asked for: lines that the reader takes after that take permits again.
func TestOldPermitsLastNoLonger(t *testing.T) {
	t.Parallel()
	for _, left := range []time.Duration{time.Second, 300 * time.Millisecond, 50 * time.Millisecond, -time.Second} {
		synctest.Test(t, func(t *testing.T) {
			pipe, taken := &channel{}, 0
			copied := &Copy{From: bytes.NewBufferString(lines(30)), To: pipe, Outlet: pipe, Reached: func(int64) {},
				Take: func(context.Context, int) (client.Start, error) {
					taken++
					return client.Start{Permits: 1, Until: time.Now().Add(left)}, nil
				}}
			ended := make(chan error, 1)
			go func() { ended <- copied.Run(t.Context()) }()
			for copied.Lines() < 30 { // a reader that looks five times a second
				<-time.NewTimer(200 * time.Millisecond).C
				pipe.read(1 << 20)
				synctest.Wait()
			}
			require.NoError(t, <-ended)
			late := 0
			if left < 200*time.Millisecond {
				late = 30
			}
			require.EqualValues(t, late, copied.Late(), left)
			require.Contains(t, []int{30 + late, 30 + late - 1}, taken, "the last line needs no permit again")
		})
	}
}
