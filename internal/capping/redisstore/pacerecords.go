package redisstore

import (
	"context"

	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/pacing"
)

// HasRequest looks up a request for permits to pacers of the group by the hash of the request. HasRequest reports
// whether the store remembers this request.
func (p *pacers) HasRequest(ctx context.Context, group string, r pacing.Request) (bool, error) {
	at := p.placeOf(group)
	return p.has(ctx, at, at.keys.Request(r))
}

// HasLog reports whether a log is stored for the target, which is a pacer, or a message or key of a pacer.
func (p *pacers) HasLog(ctx context.Context, target *pacing.Target) (bool, error) {
	at := p.placeOf(target.Group)
	return p.has(ctx, at, at.keys.Log(target.Pacer, target.Message))
}

func (p *pacers) has(ctx context.Context, at place, key string) (bool, error) {
	look := &lookPacers{key: key}
	err := p.do(ctx, ofPermits, look, at, false, nil)
	return look.found, err
}

// lookPacers is the operation with which a run checks whether a Redis key with data of pacers exists.
type lookPacers struct {
	key   string
	found bool
}

// Encode sets the command.
func (o *lookPacers) Encode(c *dispatch.Command) { c.Args.Set("get", o.key) }

// Stamp has nothing to do, because it sets times in commands, and a command of lookPacers contains no time.
func (o *lookPacers) Stamp(*dispatch.Command, dispatch.Stamp) {}

// Apply decodes the reply.
func (o *lookPacers) Apply(c *dispatch.Command) (int, error) {
	o.found = !c.Null
	return 0, nil
}
