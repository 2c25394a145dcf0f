package redisstore

import (
	"context"

	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/script"
	"capper/internal/pacing"
)

// The method Return gives unused permits of a request back; see ReturnPermits of pacing.Store.
func (p *pacers) Return(ctx context.Context, ask *pacing.Ask, used int) (pacing.Returned, error) {
	if err := ask.Check(); err != nil {
		return pacing.Returned{}, err
	}
	back := &returnPermits{pacers: p, ask: ask, used: used}
	at := p.placeOf(ask.Group())
	if err := p.do(ctx, "the call that gives back permits is", back, at, true, back.addFaults); err != nil {
		return pacing.Returned{}, err
	}
	if back.given.Reused {
		return pacing.Returned{}, &pacing.ReuseError{}
	}
	return back.given.Returned, nil
}

// A returnPermits operation gives unused permits of a request back to the pacers.
type returnPermits struct {
	pacers *pacers
	ask    *pacing.Ask
	used   int
	given  script.GivenBack
}

// The method Encode sets the arguments of return.lua.
func (o *returnPermits) Encode(c *dispatch.Command) {
	c.Args.Return(o.pacers.config.Scripts.Return, o.pacers.placeOf(o.ask.Group()).keys, o.ask, o.used)
}

// The method Stamp sets the time of the call. If a command arrives late, fewer slots (send times of permits) are in the
// future, so the command gives back fewer permits.
func (o *returnPermits) Stamp(c *dispatch.Command, at dispatch.Stamp) {
	c.Args.StampReturn(at.Now, o.pacers.config.ClockSkew)
}

// The method Apply decodes the reply of return.lua.
func (o *returnPermits) Apply(c *dispatch.Command) (n int, err error) {
	o.given, err = script.DecodeReturned(c.Reply, o.ask)
	return 0, err
}

// addFaults adds the faults of Redis keys from the reply of return.lua to f.
func (o *returnPermits) addFaults(f *dispatch.Faults) {
	f.AddUndecided(fault.WrongType, o.given.Bad.WrongType, errPacerWrongType)
	f.AddUndecided(fault.Corrupt, o.given.Bad.Corrupt, errPacerCorrupt)
}
