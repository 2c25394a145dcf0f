package redisstore

import (
	"context"
	"errors"
	"time"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/script"
)

// A filterOperation decides about the users of a batch and records the allowed sends.
type filterOperation struct {
	store    *Store
	batch    *capping.Batch
	verdicts []capping.Verdict
	header   script.Header
	rules    script.Rulebook
	counted  bool // the script counts the sends of this message
	// The map "reads" holds separate commands that read the version of the live changes: one for each command that bare
	// commands replace. Bare commands use only the key of one bucket, so they cannot read the version of the live
	// changes themselves.
	reads map[*dispatch.Command]*single
	bad   script.BadLogs
}

// The method Encode encodes a call of filter.lua for the users of the command c.
func (o *filterOperation) Encode(c *dispatch.Command) {
	s := o.store
	c.Args.Filter(s.scripts.Filter, s.keyspace, s.prefixes[c.Partition], c.Items, o.batch.Users,
		o.batch.Groups, &o.rules, script.Counts{Counted: o.counted && !c.Bare, Token: o.batch.Token}, o.known(c))
}

// The method "known" returns the caller's version of the live changes (changes of sets by API calls). The script
// filter.lua compares the caller's version with the stored version; nil means no comparison. The method "known" returns
// nil for a bare command (which may use only the key of one bucket). Before each bare command, the run compares the
// versions with a separate command.
func (o *filterOperation) known(c *dispatch.Command) *string {
	if c.Bare || c.Partition >= len(o.batch.Known) {
		return nil
	}
	return &o.batch.Known[c.Partition]
}

// beforeBare returns operations that must run before bare commands (which use the key of one bucket each) replace the
// command c.
func (o *filterOperation) beforeBare(c *dispatch.Command) (operations []dispatch.Operation) {
	if o.counted {
		operations = o.store.counts.AtLeast(true, o.batch.Token)
	}
	if o.known(c) != nil {
		read := &single{args: []string{"hget", string(script.AppendLiveKey(nil, o.store.prefixes[c.Partition])), ""}}
		o.reads[c] = read
		operations = append(operations, read)
	}
	return operations
}

// allowBare reports whether the stored version of the live changes (changes of sets by API calls) equals the caller's
// version. If the versions differ, allowBare marks the users of the command as outdated.
func (o *filterOperation) allowBare(c *dispatch.Command) bool {
	known := o.known(c)
	if read := o.reads[c]; known == nil || read.done && read.reply == *known {
		return true
	}
	o.outdate(c)
	return false
}

// The method "outdate" marks all users of the command as Unavailable and Outdated, because sets have changed.
func (o *filterOperation) outdate(c *dispatch.Command) {
	script.MarkOutdated(c.Items, o.verdicts, c.Since())
	if o.batch.Outdated != nil {
		o.batch.Outdated.Store(true)
	}
}

// The method Stamp writes the time of the attempt into the header of the command. The method Stamp runs on a goroutine
// that sends commands. The method Stamp therefore reads only fields that do not change during the run, and never reads
// the batch.
func (o *filterOperation) Stamp(c *dispatch.Command, at dispatch.Stamp) {
	h := o.header
	if h.Now == 0 {
		h.Now = at.Now
	}
	h.Since = min(h.Since, at.Since)
	c.Args.StampFilter(h)
}

// The method Apply decodes the reply of filter.lua, and stores the verdicts for the users of the command.
func (o *filterOperation) Apply(c *dispatch.Command) (int, error) {
	if script.IsOutdated(c.Reply) {
		o.outdate(c)
		return len(c.Items), nil
	}
	return script.DecodeVerdicts(c.Reply, c.Items, o.batch, o.verdicts, &o.bad)
}

// The method Filter decides about every user of the batch and records the allowed sends.
func (s *Store) Filter(ctx context.Context, b *capping.Batch, verdicts []capping.Verdict) error {
	if err := b.Check(verdicts); err != nil {
		return err
	}
	return s.perform(func() *dispatch.Run {
		op := &filterOperation{store: s, batch: b, verdicts: verdicts}
		op.prepare(s.config.ClockSkew)
		if b.Record {
			op.header.Forget = s.fleet.extend(b.Retention)
		}
		r := s.dispatch.NewRun(op, b.Record)
		op.counted = s.memory.Keep(b)
		r.AddUsers(b.Users, op.rules.CallUsers(dispatch.MostUsers))
		if op.counted {
			s.addMessage(r, b, &op.header)
		}
		if op.counted || b.Known != nil {
			op.reads = map[*dispatch.Command]*single{}
			r.BeforeBare, r.AllowBare = op.beforeBare, op.allowBare
		}
		r.Do(ctx)
		r.Faults.AddUndecided(fault.Corrupt, op.bad.Corrupt, errCorrupt)
		r.Faults.AddUndecided(fault.WrongType, op.bad.WrongType, errWrongType)
		return r
	})
}

var (
	errCorrupt   = errors.New("the user's log of sends has an incomplete entry: erase the user to repair the log")
	errWrongType = errors.New("a Redis key with sends of users must be a hash, but another program wrote the key: " +
		"find the program, and rename or delete its key")
)

// The method "prepare" encodes the arguments that are equal in all commands of the batch.
func (o *filterOperation) prepare(skew time.Duration) {
	b := o.batch
	o.header = script.Header{
		Retention: b.Retention, Forget: b.Retention, Skew: skew, Record: b.Record, Channel: b.Channel, Token: b.Token,
		Since: capping.Never,
	}
	if b.Since != 0 {
		o.header.Since = b.Since
	}
	if b.At != 0 {
		o.header.Now, o.header.Skew = b.At, 0
	}
	o.rules = script.NewRulebook(b.Rules)
}
