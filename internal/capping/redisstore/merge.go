package redisstore

import (
	"context"
	"slices"
	"strconv"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/script"
	"capper/internal/messages"
)

// A mergeOperation merges logs from another system into users' logs.
type mergeOperation struct {
	store   *Store
	merge   *capping.Merge
	merged  []capping.Merged
	header  script.Header
	counted map[capping.Token]bool // messages whose sends the script counts
	bad     script.BadLogs
}

// The method Encode encodes a call of union.lua for the users of the command c.
func (o *mergeOperation) Encode(c *dispatch.Command) {
	s := o.store
	var counted []capping.Token
	if !c.Bare {
		counted = o.tokens(c)
	}
	c.Args.Union(s.scripts.Union, s.keyspace, s.prefixes[c.Partition], c.Items, o.merge.Users, o.merge.Logs,
		counted)
}

// The method "tokens" returns the tokens (hashes of message ids) of the counted messages in the logs of the command's
// users.
func (o *mergeOperation) tokens(c *dispatch.Command) (tokens []capping.Token) {
	if len(o.counted) == 0 {
		return nil
	}
	for _, item := range c.Items {
		log := script.Log(item, o.merge.Logs)
		for i := range log.Len() {
			if token := log.Entry(i).Token; o.counted[token] && !slices.Contains(tokens, token) {
				tokens = append(tokens, token)
			}
		}
	}
	return tokens
}

// The method Stamp writes the time of the attempt into the header of the command. The method Stamp runs on a goroutine
// that sends commands. The method Stamp therefore reads only fields that do not change during the run.
func (o *mergeOperation) Stamp(c *dispatch.Command, at dispatch.Stamp) {
	h := o.header
	h.Now = at.Now
	c.Args.StampUnion(h)
}

// The method Apply decodes the reply of union.lua, and stores the results for the users of the command.
func (o *mergeOperation) Apply(c *dispatch.Command) (int, error) {
	return script.DecodeUnited(c.Reply, c.Items, o.merged, &o.bad)
}

// The method Merge merges logs from another system into the logs of the users.
func (s *Store) Merge(ctx context.Context, m *capping.Merge, merged []capping.Merged) error {
	if err := m.Check(merged); err != nil {
		return err
	}
	return s.perform(func() *dispatch.Run {
		op := &mergeOperation{store: s, merge: m, merged: merged}
		op.header = script.Header{Forget: s.fleet.extend(m.Retention), Skew: s.config.ClockSkew}
		if m.Counted {
			op.counted = tokensOf(m.Messages)
		}
		r := s.dispatch.NewRun(op, true)
		r.BeforeBare = func(c *dispatch.Command) []dispatch.Operation { return s.counts.AtLeast(true, op.tokens(c)...) }
		r.AddUsers(m.Users, mergedUsers(m.Logs))
		for _, message := range m.Messages {
			token := message.Token()
			set := &single{args: []string{"set", s.messageKey(token), message.Text(), "px",
				strconv.FormatInt(op.header.Life(), 10)}}
			r.AddOnce(set, s.messagePartition(token))
		}
		for _, key := range op.campaigns() {
			s.counts.List(r, key, capping.InstantOf(s.config.Clock()))
		}
		r.Do(ctx)
		r.Faults.AddUndecided(fault.Corrupt, op.bad.Corrupt, errCorrupt)
		r.Faults.AddUndecided(fault.WrongType, op.bad.WrongType, errWrongType)
		return r
	})
}

// The method "campaigns" returns, without repetitions, the campaigns (messages on channels) whose sends the merge
// counts.
func (o *mergeOperation) campaigns() (keys []messages.Key) {
	owned := make(map[capping.Token]capping.Message, len(o.counted))
	for _, message := range o.merge.Messages {
		if token := message.Token(); o.counted[token] {
			owned[token] = message
		}
	}
	if len(owned) == 0 {
		return nil
	}
	seen := make(map[messages.Key]bool, len(owned))
	for _, log := range o.merge.Logs {
		for i := range log.Len() {
			e := log.Entry(i)
			message, counted := owned[e.Token]
			if key := (messages.Key{Message: message, Channel: e.Channel}); counted && !seen[key] {
				seen[key] = true
				keys = append(keys, key)
			}
		}
	}
	return keys
}

func tokensOf(owned []capping.Message) map[capping.Token]bool {
	tokens := make(map[capping.Token]bool, len(owned))
	for _, message := range owned {
		tokens[message.Token()] = true
	}
	return tokens
}

// mergedBytes is the approximate maximum size of the logs in one command of a merge. The script union.lua reads up to
// about twice as many bytes at once, because it reads the new logs and the stored logs.
const mergedBytes = 48_000

// mergedUsers returns the maximum number of users in one command of a merge, so that the users' logs fit into the
// command.
func mergedUsers(logs []capping.Log) int {
	bytes := 0
	for _, log := range logs {
		bytes += len(log)
	}
	if bytes == 0 {
		return dispatch.MostUsers
	}
	return min(max(1, mergedBytes*len(logs)/bytes), dispatch.MostUsers)
}
