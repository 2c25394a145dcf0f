package redisstore

import (
	"context"
	"encoding/hex"
	"strconv"
	"sync/atomic"

	"capper/internal/capping"
)

// record is the format record: which version of the stored format the logs
// have. It has a TTL that outlives theirs, so that an idle keyspace empties.
type record struct {
	key, text string
	until     atomic.Int64 // instant until which it lasts, as far as this store set it
}

const formatVersion = 1

// epoch names the instant 0 of entries.
const epoch = "2024-01-01"

func newRecord(l layout, namespace string) record {
	return record{
		key: namespace + ":{" + recordTag + "}",
		text: "capper log " + strconv.Itoa(formatVersion) + " bucket " + strconv.Itoa(int(l.bucketSize)) +
			" partitions " + strconv.Itoa(l.partitions) + " epoch " + epoch,
	}
}

// formatError is that the keyspace was written by another version.
type formatError struct{ found, want string }

func (e *formatError) Error() string {
	return "the stored format is " + strconv.Quote(e.found) + ", this version reads and writes " + strconv.Quote(e.want) +
		": use the version of capper that wrote it, or another namespace or cluster"
}

// checkFormat refuses a keyspace of another format.
func (s *Store) checkFormat(ctx context.Context) error {
	c, j := s.command(s.layout.record(), "get", s.record.key)
	r := s.newRun(j, false)
	r.add(c)
	s.do(ctx, r)
	if err := r.faults.err(); err != nil {
		return err
	}
	if !j.null && j.reply != s.record.text {
		return &formatError{j.reply, s.record.text}
	}
	return nil
}

// accompany adds to a run that records what has to be stored beside the logs:
// the format record when it would not outlive them, and the message.
func (s *Store) accompany(r *run, b *capping.Batch) {
	h := header{retention: b.Retention, skew: s.config.ClockSkew}
	keep, now := h.keep(), int64(capping.InstantOf(s.config.Clock()))
	needed := now + lifeOf(keep)
	if until := s.record.until.Load(); until < needed {
		life := lifeOf(keep) + keep/32
		c := &call{partition: s.layout.record(), side: true}
		c.job = &formatJob{store: s, life: life, until: now + life}
		c.job.encode(c)
		r.add(c)
	}
	if s.memory.Keep(b) {
		p := s.messagePartition(b.Token)
		c, _ := s.command(p, "set", s.messageKey(b.Token), b.Message.Text(), "px", strconv.FormatInt(lifeOf(keep), 10))
		c.side = true
		r.add(c)
	}
}

// formatJob renews the format record.
type formatJob struct {
	store *Store
	life  int64 // milliseconds
	until int64 // instant
}

func (j *formatJob) encode(c *call) {
	record := &j.store.record
	c.command("evalsha", j.store.top.scripts.format.sha, "1", record.key, record.text, strconv.FormatInt(j.life, 10))
}

func (j *formatJob) stamp(*call) {}

func (j *formatJob) apply(c *call) (int, error) {
	if record := &j.store.record; c.reply != record.text {
		err := &formatError{c.reply, record.text}
		if j.store.mismatch.CompareAndSwap(nil, err) {
			j.store.config.Logger.Error("the store stops deciding", "error", err)
		}
		return 0, err
	}
	j.store.record.until.Store(j.until)
	return 0, nil
}

// messagePartition spreads message ids over the nodes.
func (s *Store) messagePartition(t capping.Token) int {
	return (int(t[0])<<8 | int(t[1])) % s.layout.partitions
}

func (s *Store) messageKey(t capping.Token) string {
	return s.prefixes[s.messagePartition(t)] + "m:" + hex.EncodeToString(t[:])
}

// Messages finds the messages of tokens.
func (s *Store) Messages(ctx context.Context, tokens []capping.Token) (map[capping.Token]capping.Message, error) {
	found := make(map[capping.Token]capping.Message, len(tokens))
	if len(tokens) == 0 {
		return found, nil
	}
	err := s.timed("messages", len(tokens), func() (*run, error) {
		jobs := make([]*commandJob, len(tokens))
		r := s.newRun(nil, false)
		for i, t := range tokens {
			var c *call
			c, jobs[i] = s.command(s.messagePartition(t), "get", s.messageKey(t))
			r.add(c)
		}
		s.do(ctx, r)
		for i, j := range jobs {
			if j.done && !j.null {
				found[tokens[i]] = capping.MessageOf(j.reply)
			}
		}
		return r, nil
	})
	return found, err
}
