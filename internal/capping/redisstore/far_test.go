package redisstore

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// distance is the delay between a store and its servers: every byte takes half a round trip each way, and a new
// connection takes a whole one.
type distance struct {
	roundTrip time.Duration
	open      sync.WaitGroup
}

func (d *distance) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	far, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	select {
	case <-time.After(d.roundTrip):
	case <-ctx.Done():
		return nil, net.ErrClosed
	}
	near, end := net.Pipe()
	d.open.Go(func() { d.carry(end, far) })
	d.open.Go(func() { d.carry(far, end) })
	return near, nil
}

// carry forwards bytes in order, each half a round trip after it was sent.
func (d *distance) carry(to, from net.Conn) {
	type parcel struct {
		bytes []byte
		due   time.Time
	}
	way := make(chan parcel, 1000)
	d.open.Go(func() {
		defer func() { _, _ = to.Close(), from.Close() }()
		for p := range way {
			<-time.After(time.Until(p.due))
			if _, err := to.Write(p.bytes); err != nil {
				_, _ = io.Copy(io.Discard, from)
			}
		}
	})
	defer close(way)
	for {
		bytes := make([]byte, 1<<16)
		n, err := from.Read(bytes)
		if err != nil {
			return
		}
		way <- parcel{bytes[:n], time.Now().Add(d.roundTrip / 2)}
	}
}

// The error of a late call says so, because a corrected clock would not help.
func TestLateCallsAreToldFromWrongClocks(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{})
	d := &distance{roundTrip: 500 * time.Millisecond}
	defer d.open.Wait()
	s, err := openInTime(t, Config{Addrs: c.Addrs, dial: d.dial, ClockSkew: 100 * time.Millisecond,
		ReplicaAcks: FixedAcks(0)})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.Contains(t, warningsOf(t, s)[1], "calls that take longer than clock_skew 100ms")
	testkit.FailsWith(t, "after its timestamp, which exceeds clock_skew 100ms", func() error {
		err := s.Filter(background(t, 2*time.Second), batchOf("a", spread(20)), make([]capping.Verdict, 20))
		require.Error(t, err)
		require.NotContains(t, err.Error(), "NTP")
		return err
	})

	var late atomic.Int64
	behind := openTest(t, Config{
		Addrs: c.Addrs, ReplicaAcks: FixedAcks(0), ClockSkew: 250 * time.Millisecond,
		Clock: func() time.Time { return time.Now().Add(-time.Duration(late.Load())) },
	})
	late.Store(int64(time.Hour)) // Open would have refused it
	err = behind.Filter(t.Context(), batchOf("a", spread(20)), make([]capping.Verdict, 20))
	require.ErrorContains(t, err, "20 users undecided (clock)")
	require.ErrorContains(t, err, "its clock differs from this machine's by 1h0m")
	require.ErrorContains(t, err, "NTP")
}
