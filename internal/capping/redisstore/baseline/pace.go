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

// Pacer is the usual design of a sliding log per provider. It is safe for
// concurrent use.
type Pacer struct {
	redis redis.Scripter
	sha   string
}

// NewPacer loads the script and returns a pacer over r.
func NewPacer(ctx context.Context, r redis.Scripter) (*Pacer, error) {
	sha, err := r.ScriptLoad(ctx, paceSource).Result()
	return &Pacer{r, sha}, err
}

// Request asks whether one request may be performed now, and records it if so.
func (p *Pacer) Request(ctx context.Context, provider string, most int, window time.Duration) (bool, error) {
	var member [8]byte
	_, _ = rand.Read(member[:])
	live := (window + time.Millisecond - 1).Milliseconds()
	return p.redis.EvalSha(ctx, p.sha, []string{ProviderKey(provider)}, most, window.Microseconds(), live,
		member[:]).Bool()
}

// ProviderKey is the key of a provider.
func ProviderKey(provider string) string { return "pace:" + provider }
