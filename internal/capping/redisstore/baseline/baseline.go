// Package baseline implements frequency capping with the usual sliding log on Redis, for comparison with the store.
// Only tests and benchmarks use package baseline. For each user, the baseline has one sorted set and makes one script
// call. All script calls of the baseline use the cluster pipeline of the Redis library. The baseline does not detect
// repeated sends, and does not wait for replicas. The baseline supports only rolling windows over all channels.
package baseline

import (
	"context"
	"crypto/rand"
	_ "embed"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"capper/internal/capping"
)

// Source is the text of the Lua script.
//
//go:embed baseline.lua
var Source string

// CountingSource is a variant of Source in which each run adds a new member to the sorted set. If CountingSource runs
// twice for a send, the set contains the send twice. CountingSource needs one more Redis command than Source, so it is
// not for speed comparisons.
var CountingSource = strings.Replace(Source, "now, ARGV[2])", "now, ARGV[2] .. table.concat(redis.call('TIME')))", 1)

// A Client decides about sends with a usual sliding log in Redis. A Client is safe for concurrent use.
type Client struct {
	redis redis.UniversalClient
	clock func() time.Time
	sha   string
}

// New loads a Lua script into Redis and returns a Client. The argument "source" of New is the text of the script. The
// argument r of New is the connection to Redis, which the caller must close.
func New(ctx context.Context, r redis.UniversalClient, clock func() time.Time, source string) (*Client, error) {
	sha, err := r.ScriptLoad(ctx, source).Result()
	return &Client{r, clock, sha}, err
}

// Key returns the Redis key of a user's sorted set.
func Key(user capping.UserID) string { return "fc:" + strconv.FormatUint(uint64(user), 10) }

// The method Filter decides about the users of a batch, like Filter of capping.Store. A user whose script call failed
// is Unavailable.
func (c *Client) Filter(ctx context.Context, b *capping.Batch, verdicts []capping.Verdict) error {
	now := int64(capping.InstantOf(c.clock()))
	pipe := c.redis.Pipeline()
	cmds := make([]*redis.Cmd, len(b.Users))
	nonces := make([]byte, 6*len(b.Users))
	_, _ = rand.Read(nonces)
	for i, user := range b.Users {
		member := string(b.Token[:]) + string(nonces[6*i:6*i+6])
		args := []any{now, member, b.Retention.Milliseconds()}
		for _, rule := range b.Rules[b.Groups[i]] {
			args = append(args, rule.Max, rule.Hold)
		}
		cmds[i] = pipe.EvalSha(ctx, c.sha, []string{Key(user)}, args...)
	}
	_, err := pipe.Exec(ctx)
	for i, cmd := range cmds {
		switch n, err := cmd.Int(); {
		case err != nil:
		case n == 1:
			verdicts[i].Outcome = capping.Allowed
		default:
			verdicts[i].Outcome = capping.Denied
		}
	}
	return err
}
