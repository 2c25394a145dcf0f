package client

import (
	"testing"
	"time"
)

// TestPermitsBeyondTheirLeaseLapse checks that the stock drops the permits whose lease has ended before their slot, and
// no others. The service may have given these slots to other senders.
func TestPermitsBeyondTheirLeaseLapse(t *testing.T) {
	begun := time.Now()
	for _, c := range []struct {
		ends, now time.Duration // after the first slot; ends 0: the request has no lease
		want      int
	}{
		{0, time.Hour, 10},
		{4 * time.Second, 3 * time.Second, 10},
		{4 * time.Second, 5 * time.Second, 5},
		{9 * time.Second, 10 * time.Second, 10},
		{-time.Second, time.Second, 0},
	} {
		of := &asking{}
		if c.ends != 0 {
			of.lease.ends = begun.Add(c.ends)
		}
		s := stock{runs: []stockRun{{at: begun, every: time.Second, permits: 10, of: of}}, permits: 10}
		s.lapse(begun.Add(c.now))
		if s.permits != c.want {
			t.Errorf("lease until %v, now %v: %d permits stay, want %d", c.ends, c.now, s.permits, c.want)
		}
	}
}
