package redisstore

import (
	"context"

	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/pacing"
)

// HasRequest reports whether the store remembers the permit request to pacers of the group. The argument r of
// HasRequest is the hash of the request.
func (p *pacers) HasRequest(ctx context.Context, group string, r pacing.Request) (bool, error) {
	at := p.placeOf(group)
	return p.has(ctx, at, at.keys.Request(r))
}

// HasLog reports whether the store has a log of the target: of a pacer, or of a message or key of a pacer.
func (p *pacers) HasLog(ctx context.Context, target *pacing.Target) (bool, error) {
	at := p.placeOf(target.Group)
	return p.has(ctx, at, at.keys.Log(target.Pacer, target.Message))
}

func (p *pacers) has(ctx context.Context, at place, key string) (bool, error) {
	look := &lookPacers{key: key}
	err := p.do(ctx, ofPermits, look, at, false, nil)
	return look.found, err
}

// A lookPacers operation checks whether a Redis key with data of pacers exists.
type lookPacers struct {
	key   string
	found bool
}

// The method Encode sets the command.
func (o *lookPacers) Encode(c *dispatch.Command) { c.Args.Set("get", o.key) }

// The method Stamp does nothing, because the command of lookPacers contains no time.
func (o *lookPacers) Stamp(*dispatch.Command, dispatch.Stamp) {}

// The method Apply decodes the reply.
func (o *lookPacers) Apply(c *dispatch.Command) (int, error) {
	o.found = !c.Null
	return 0, nil
}
