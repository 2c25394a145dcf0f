package redisstore

import (
	"context"
	"time"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/script"
)

// The method "key" returns the location of a user's log: the partition, the Redis key and the hash field.
func (s *Store) key(user capping.UserID) (partition int, key, field string) {
	partition = s.keyspace.Partition(user)
	key = string(script.AppendKey(nil, s.prefixes[partition], s.keyspace.Bucket(user)))
	return partition, key, s.keyspace.FieldName(user)
}

// An eraseOperation removes the log of one user.
type eraseOperation struct {
	script     *script.Script
	key, field string
	skew       time.Duration
	bad        script.BadLogs
}

// The method Encode sets the arguments of erase.lua.
func (o *eraseOperation) Encode(c *dispatch.Command) { c.Args.Erase(o.script, o.key, o.field) }

// The method Stamp writes the time of the attempt into the header, so that Redis rejects a late command and removes
// nothing.
func (o *eraseOperation) Stamp(c *dispatch.Command, at dispatch.Stamp) {
	c.Args.StampTime(at.Now, o.skew)
}

// The method Apply decodes the reply of erase.lua.
func (o *eraseOperation) Apply(c *dispatch.Command) (int, error) {
	return 0, script.DecodeErased(c.Reply, &o.bad)
}

// The method Erase removes the user's log.
func (s *Store) Erase(ctx context.Context, user capping.UserID) error {
	return s.perform(func() *dispatch.Run {
		partition, key, field := s.key(user)
		erase := &eraseOperation{script: s.scripts.Erase, key: key, field: field, skew: s.config.ClockSkew}
		r := s.dispatch.NewRun(erase, true)
		r.Add(erase, partition)
		r.Do(ctx)
		r.Faults.AddUndecided(fault.WrongType, erase.bad.WrongType, errWrongType)
		return r
	})
}

// Log returns the user's log.
func (s *Store) Log(ctx context.Context, user capping.UserID) (capping.Log, error) {
	var log capping.Log
	err := s.perform(func() *dispatch.Run {
		partition, key, field := s.key(user)
		read := &single{args: []string{"hget", key, field}}
		r := s.dispatch.NewRun(read, false)
		r.Add(read, partition)
		r.Do(ctx)
		log = capping.Log(read.reply)
		if len(log)%capping.EntrySize != 0 {
			r.Faults.AddUndecided(fault.Corrupt, 1, errCorrupt)
			log = nil
		}
		return r
	})
	return log, err
}

// The type "single" is an operation that runs one Redis command without a time.
type single struct {
	args  []string
	reply string
	null  bool
	done  bool
}

// The method Encode sets the command.
func (o *single) Encode(c *dispatch.Command) { c.Args.Set(o.args...) }

// The method Stamp does nothing, because the command contains no time.
func (o *single) Stamp(*dispatch.Command, dispatch.Stamp) {}

// The method Apply stores the reply.
func (o *single) Apply(c *dispatch.Command) (int, error) {
	o.reply, o.null, o.done = c.Reply, c.Null, true
	return 0, nil
}
