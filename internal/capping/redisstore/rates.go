package redisstore

import (
	"context"
	"time"

	"github.com/go-redis/redis_rate/v10"
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
	partition := int(crc16(caller)) % s.layout.partitions
	n := s.top.route(partition)
	if n == nil {
		return Budget{}, errNoRoute
	}
	limit := redis_rate.Limit{Rate: perSecond, Burst: burst, Period: time.Second}
	// The library's prefix goes before the key; the partition's tag keeps it on the partition's node.
	result, err := redis_rate.NewLimiter(n.client).AllowN(ctx, s.prefixes[partition]+"rate:"+caller, limit, users)
	if err != nil {
		s.top.outdated()
		return Budget{}, err
	}
	return Budget{
		Allowed: result.Allowed > 0, Remaining: result.Remaining,
		RetryAfter: max(result.RetryAfter, 0), ResetAfter: result.ResetAfter,
	}, nil
}
