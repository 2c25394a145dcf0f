package redisstore

import (
	"context"
	"encoding/hex"
	"strconv"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/script"
)

// If the text of the batch's message must be stored now, addMessage adds a command that stores the text to the run. A
// stored message text expires at the same time as the users' logs.
func (s *Store) addMessage(r *dispatch.Run, b *capping.Batch, h *script.Header) {
	if !s.memory.Due(b) {
		return
	}
	set := &single{args: []string{"set", s.messageKey(b.Token), b.Message.Text(), "px", strconv.FormatInt(h.Life(),
		10)}}
	r.AddAside(set, s.messagePartition(b.Token))
}

// messagePartition returns the partition that stores a message's text. The token (hash of the message id) determines
// the partition, so that the texts are spread over the nodes.
func (s *Store) messagePartition(t capping.Token) int {
	return (int(t[0])<<8 | int(t[1])) % s.keyspace.Partitions
}

func (s *Store) messageKey(t capping.Token) string {
	return s.prefixes[s.messagePartition(t)] + "m:" + hex.EncodeToString(t[:])
}

// Messages returns the message of each token (hash of a message id); see capping.Store.
func (s *Store) Messages(ctx context.Context, tokens []capping.Token) (map[capping.Token]capping.Message, error) {
	found := make(map[capping.Token]capping.Message, len(tokens))
	if len(tokens) == 0 {
		return found, nil
	}
	err := s.perform(func() *dispatch.Run {
		reads := make([]single, len(tokens))
		r := s.dispatch.NewRun(nil, false)
		for i, t := range tokens {
			reads[i].args = []string{"get", s.messageKey(t)}
			r.Add(&reads[i], s.messagePartition(t))
		}
		r.Do(ctx)
		for i := range reads {
			if reads[i].done && !reads[i].null {
				found[tokens[i]] = capping.MessageOf(reads[i].reply)
			}
		}
		return r
	})
	return found, err
}
