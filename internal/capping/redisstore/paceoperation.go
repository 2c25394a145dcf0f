package redisstore

import (
	"slices"

	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/script"
	"capper/internal/pacing"
)

// A takePermits operation takes the permits of a request from the pacers of the request.
type takePermits struct {
	pacers *pacers
	ask    *pacing.Ask
	joined []*pacing.Ask // see script.Args.Pace
	paced  script.Paced
}

// The method Encode sets the arguments of pace.lua.
func (o *takePermits) Encode(c *dispatch.Command) {
	c.Args.Pace(o.pacers.config.Scripts.Pace, o.pacers.placeOf(o.ask.Group()).keys, o.ask, o.joined)
}

// The method Stamp sets the time of the call. With this time, the script pace.lua rejects a late command, so that no
// permits are taken after the caller has stopped waiting.
func (o *takePermits) Stamp(c *dispatch.Command, at dispatch.Stamp) {
	c.Args.StampPace(at.Now, o.pacers.config.ClockSkew)
}

// The method Apply decodes the grant.
func (o *takePermits) Apply(c *dispatch.Command) (n int, err error) {
	o.paced, err = script.DecodePaced(c.Reply, o.ask)
	if err == nil && slices.ContainsFunc(o.paced.Repeated, func(i int) bool { return i >= len(o.joined) }) {
		err = script.ErrReply
	}
	return 0, err
}

// addFaults adds the faults of Redis keys from the reply of pace.lua to f.
func (o *takePermits) addFaults(f *dispatch.Faults) {
	f.AddUndecided(fault.WrongType, o.paced.Bad.WrongType, errPacerWrongType)
	f.AddUndecided(fault.Corrupt, o.paced.Bad.Corrupt, errPacerCorrupt)
}

// A forgetPacer operation resets a pacer: the operation removes all grants of the pacer.
type forgetPacer struct {
	pacers *pacers
	pacer  string
	at     place
	bad    script.BadLogs
}

// The method Encode sets the arguments of forget.lua.
func (o *forgetPacer) Encode(c *dispatch.Command) {
	c.Args.Forget(o.pacers.config.Scripts.Forget, o.at.keys, o.pacer)
}

// The method Stamp sets the time of the call, so that Redis rejects a late command. A late command would also remove
// grants from the time after the reset.
func (o *forgetPacer) Stamp(c *dispatch.Command, at dispatch.Stamp) {
	c.Args.StampPace(at.Now, o.pacers.config.ClockSkew)
}

// The method Apply decodes the reply of forget.lua.
func (o *forgetPacer) Apply(c *dispatch.Command) (int, error) {
	return 0, script.DecodeErased(c.Reply, &o.bad)
}
