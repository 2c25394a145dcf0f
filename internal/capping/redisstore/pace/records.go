package pace

import (
	"context"

	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/pacing"
)

// HasRequest reports whether the request is remembered.
func (p *Pacers) HasRequest(ctx context.Context, r pacing.Request) (bool, error) {
	return p.has(ctx, p.keys.Request(r))
}

// HasLog reports whether the target has a log.
func (p *Pacers) HasLog(ctx context.Context, target *pacing.Target) (bool, error) {
	return p.has(ctx, p.keys.Log(target.Pacer, target.Message))
}

func (p *Pacers) has(ctx context.Context, key string) (bool, error) {
	look := &lookOperation{key: key}
	err := p.do(ctx, ofPermits, look, false, nil)
	return look.found, err
}

// lookOperation looks whether a key is there.
type lookOperation struct {
	key   string
	found bool
}

// Encode sets the arguments.
func (o *lookOperation) Encode(c *dispatch.Command) { c.Args.Set("get", o.key) }

// Stamp has nothing to do.
func (o *lookOperation) Stamp(*dispatch.Command, dispatch.Stamp) {}

// Apply takes the reply.
func (o *lookOperation) Apply(c *dispatch.Command) (int, error) {
	o.found = !c.Null
	return 0, nil
}
