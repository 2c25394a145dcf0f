package redisstore

import (
	"context"

	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/script"
	"capper/internal/pacing"
)

// The method "merge" shortens the full log of the pacer in the argument "target". If another caller has just shortened
// the log, "merge" does nothing. The argument "now" of the method "merge" is the time of the merge. The script pace.lua
// adds no slots (send times of permits) to a full log.
func (p *pacers) merge(ctx context.Context, now pacing.Time, target *pacing.Target) error {
	select {
	case p.merging <- struct{}{}:
		defer func() { <-p.merging }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	at := p.placeOf(target.Group)
	read := &readPacers{key: at.keys.Log(target.Pacer, target.Message)}
	err := p.do(ctx, ofPermits, read, at, false, func(f *dispatch.Faults) {
		f.AddUndecided(fault.Corrupt, read.corrupt, errPacerCorrupt)
	})
	if err != nil || !read.log.Full() {
		return err
	}
	read.log.Log.Merge(now, target.Limits)
	return p.do(ctx, ofPermits, &mergePacers{pacers: p, key: read.key, log: &read.log}, at, false, nil)
}

// A readPacers operation reads the log of one pacer.
type readPacers struct {
	key     string
	log     script.PacerLog
	corrupt int
}

// The method Encode sets the command.
func (o *readPacers) Encode(c *dispatch.Command) { c.Args.Set("get", o.key) }

// The method Stamp does nothing, because the command of readPacers contains no time.
func (o *readPacers) Stamp(*dispatch.Command, dispatch.Stamp) {}

// The method Apply decodes the log.
func (o *readPacers) Apply(c *dispatch.Command) (int, error) {
	if c.Null {
		return 0, nil
	}
	var err error
	if o.log, err = script.DecodePacerLog(c.Reply); err != nil {
		o.corrupt = 1
	}
	return 0, nil
}

// A mergePacers operation replaces a pacer's log by a shorter log, but only if the log has not changed since it was
// read.
type mergePacers struct {
	pacers *pacers
	key    string
	log    *script.PacerLog
}

// The method Encode sets the arguments of merge.lua.
func (o *mergePacers) Encode(c *dispatch.Command) {
	c.Args.Merge(o.pacers.config.Scripts.Merge, o.key, o.log)
}

// The method Stamp does nothing, because merge.lua needs no time: if the log has changed since the read, the script
// writes nothing.
func (o *mergePacers) Stamp(*dispatch.Command, dispatch.Stamp) {}

// The method Apply decodes the reply of merge.lua.
func (o *mergePacers) Apply(c *dispatch.Command) (int, error) {
	return 0, script.DecodeMerged(c.Reply)
}
