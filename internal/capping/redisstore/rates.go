package redisstore

import (
	"context"
	"fmt"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/script"
)

var _ capping.RateLimiter = (*Store)(nil)

// Take takes users from the client's budget, which all instances over this
// Redis share; see capping.RateLimiter. The algorithm is GCRA, by the node's clock.
// One attempt: while the client's node is away the error says so.
func (s *Store) Take(ctx context.Context, client string, rate capping.Rate, users int) (capping.RateState, error) {
	partition := s.keyspace.PartitionOf(client)
	n := s.top.Route(partition)
	if n == nil {
		return capping.RateState{}, fault.ErrNoRoute
	}
	reply, err := s.scripts.Rate.Run(ctx, n.Client(), []string{s.rateKey(partition, client)}, script.RateArgs(rate, users)...).Int64Slice()
	var state capping.RateState
	if err == nil {
		state, err = script.DecodeRate(reply)
	}
	if err != nil {
		s.top.RefreshSoon()
		return capping.RateState{}, fmt.Errorf("node %s: %w", n.Addr(), err)
	}
	return state, nil
}

// rateKey is the key of a client's budget: the colon tells it from a bucket's.
func (s *Store) rateKey(partition int, client string) string {
	return s.prefixes[partition] + "rate:" + client
}
