package baseline

import (
	"context"
	"crypto/rand"
	_ "embed"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed pace.lua
var paceSource string

// Pacer limits the rate of requests to each provider with the usual sliding log on Redis. A Pacer is safe for
// concurrent use.
type Pacer struct {
	redis redis.Scripter
	sha   string
}

// NewPacer loads the Lua script and returns a Pacer that uses r.
func NewPacer(ctx context.Context, r redis.Scripter) (*Pacer, error) {
	sha, err := r.ScriptLoad(ctx, paceSource).Result()
	return &Pacer{r, sha}, err
}

// Request reports whether one request to the provider is allowed now, and records an allowed request.
func (p *Pacer) Request(ctx context.Context, provider string, most int, window time.Duration) (bool, error) {
	var member [8]byte
	_, _ = rand.Read(member[:])
	live := (window + time.Millisecond - 1).Milliseconds()
	return p.redis.EvalSha(ctx, p.sha, []string{ProviderKey(provider)}, most, window.Microseconds(), live,
		member[:]).Bool()
}

// ProviderKey returns the Redis key of the sorted set in which a Pacer records the requests to a provider.
func ProviderKey(provider string) string { return "pace:" + provider }
