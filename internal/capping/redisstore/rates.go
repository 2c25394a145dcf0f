package redisstore

import (
	"context"
	"fmt"
	"time"

	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/script"
)

// Budget is what a caller may ask for after a call. RetryAfter and ResetAfter
// are zero when there is nothing to wait for.
type Budget struct {
	Allowed    bool
	Remaining  int           // users that would be allowed at once now
	RetryAfter time.Duration // Allowed false: until the same call would be allowed
	ResetAfter time.Duration // until the whole burst is there again
}

// Take takes users from the budget that all instances over this Redis share
// for a caller: perSecond of them, burst at once. It takes all or nothing; the
// algorithm is GCRA, by the node's clock. One attempt: while the caller's node
// is away the error says so, and what then is for the service to decide.
func (s *Store) Take(ctx context.Context, caller string, perSecond, burst, users int) (Budget, error) {
	partition := s.layout.PartitionOf(caller)
	n := s.top.Route(partition)
	if n == nil {
		return Budget{}, fault.ErrNoRoute
	}
	reply, err := s.scripts.Rate.Run(ctx, n.Client(), []string{s.rateKey(partition, caller)}, perSecond, burst, users).Int64Slice()
	if err == nil && len(reply) != 4 {
		err = script.ErrReply
	}
	if err != nil {
		s.top.RefreshSoon()
		return Budget{}, fmt.Errorf("node %s: %w", n.Addr(), err)
	}
	millis := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	return Budget{Allowed: reply[0] == 1, Remaining: int(reply[1]), RetryAfter: millis(reply[2]), ResetAfter: millis(reply[3])}, nil
}

// rateKey is the key of a caller's budget: the colon tells it from a bucket's.
func (s *Store) rateKey(partition int, caller string) string {
	return s.prefixes[partition] + "rate:" + caller
}
