package redisstore

import (
	"context"

	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/script"
	"capper/internal/pacing"
)

// merge makes room in the target's log as of now, unless somebody else did. A full
// log stays as it is until then, so that nothing is added to it meanwhile.
func (p *pacers) merge(ctx context.Context, now pacing.Time, target *pacing.Target) error {
	select {
	case p.merging <- struct{}{}:
		defer func() { <-p.merging }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	read := &readPacers{key: p.keys.Log(target.Pacer, target.Message)}
	err := p.do(ctx, ofPermits, read, false, func(f *dispatch.Faults) {
		f.AddUndecided(fault.Corrupt, read.corrupt, errPacerCorrupt)
	})
	if err != nil || !read.log.Full() {
		return err
	}
	read.log.Log.Merge(now, target.Limits)
	return p.do(ctx, ofPermits, &mergePacers{pacers: p, key: read.key, log: &read.log}, false, nil)
}

// readOperation reads a log.
type readPacers struct {
	key     string
	log     script.PacerLog
	corrupt int
}

// Encode sets the arguments.
func (o *readPacers) Encode(c *dispatch.Command) { c.Args.Set("get", o.key) }

// Stamp has nothing to do.
func (o *readPacers) Stamp(*dispatch.Command, dispatch.Stamp) {}

// Apply takes the log.
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

// mergeOperation puts the merged log in the place of the one that was read.
type mergePacers struct {
	pacers *pacers
	key    string
	log    *script.PacerLog
}

// Encode sets the arguments.
func (o *mergePacers) Encode(c *dispatch.Command) {
	c.Args.Merge(o.pacers.config.Scripts.Merge, o.key, o.log)
}

// Stamp has nothing to do: what is late finds another log, and leaves it.
func (o *mergePacers) Stamp(*dispatch.Command, dispatch.Stamp) {}

// Apply takes the reply.
func (o *mergePacers) Apply(c *dispatch.Command) (int, error) {
	return 0, script.DecodeMerged(c.Reply)
}
