package pace

import (
	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/script"
	"capper/internal/pacing"
)

// takeOperation takes permits.
type takeOperation struct {
	pacers *Pacers
	ask    *pacing.Ask
	paced  script.Paced
}

// Encode sets the arguments.
func (o *takeOperation) Encode(c *dispatch.Command) {
	c.Args.Pace(o.pacers.config.Scripts.Pace, o.pacers.keys, o.ask)
}

// Stamp sets the time: a call that comes late must not take permits that nobody waits for.
func (o *takeOperation) Stamp(c *dispatch.Command, at dispatch.Stamp) {
	c.Args.StampPace(at.Now, o.pacers.config.ClockSkew)
}

// Apply takes the reply.
func (o *takeOperation) Apply(c *dispatch.Command) (n int, err error) {
	o.paced, err = script.DecodePaced(c.Reply, o.ask)
	return 0, err
}

// addFaults adds what the reply says of keys.
func (o *takeOperation) addFaults(f *dispatch.Faults) {
	f.AddUndecided(fault.WrongType, o.paced.Bad.WrongType, errWrongType)
	f.AddUndecided(fault.Corrupt, o.paced.Bad.Corrupt, errCorrupt)
}

// forgetOperation forgets a pacer.
type forgetOperation struct {
	pacers *Pacers
	pacer  string
	bad    script.BadLogs
}

// Encode sets the arguments.
func (o *forgetOperation) Encode(c *dispatch.Command) {
	c.Args.Forget(o.pacers.config.Scripts.Forget, o.pacers.keys, o.pacer)
}

// Stamp sets the time: what comes late must not forget what was given out since.
func (o *forgetOperation) Stamp(c *dispatch.Command, at dispatch.Stamp) {
	c.Args.StampPace(at.Now, o.pacers.config.ClockSkew)
}

// Apply takes the reply.
func (o *forgetOperation) Apply(c *dispatch.Command) (int, error) {
	return 0, script.DecodeErased(c.Reply, &o.bad)
}
