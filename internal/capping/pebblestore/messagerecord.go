package pebblestore

import (
	"encoding/json"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
	"capper/internal/messages"
)

// A record holds the stored counts of a message on one channel, except the numbers of sends.
type record struct {
	Namespace string          `json:"namespace,omitempty"`
	Message   string          `json:"message"`
	Life      capping.Instant `json:"life"`
	messages.Answers
}

// recordVersion is the first byte of a stored record of a message's counts.
const recordVersion = 1

func (r *record) encode() ([]byte, error) {
	text, err := json.Marshal(r)
	return append([]byte{recordVersion}, text...), err
}

func decodeRecord(value []byte) (*record, error) {
	return decodeVersioned[record](value, recordVersion, "campaign record")
}

// decodeVersioned decodes a stored value that consists of a version byte and JSON.
func decodeVersioned[Value any](value []byte, version byte, what string) (*Value, error) {
	if len(value) == 0 || value[0] != version {
		return nil, fmt.Errorf("stored %s of %d bytes must begin with the format version %d", what, len(value), version)
	}
	v := new(Value)
	if err := json.Unmarshal(value[1:], v); err != nil {
		return nil, fmt.Errorf("decode %s: %w", what, err)
	}
	return v, nil
}

func (r *record) key(i id) messages.Key {
	return messages.Key{Message: capping.Message{Namespace: r.Namespace, ID: r.Message}, Channel: i.channel}
}

// The method "load" returns the stored record of a message on a channel, or nil if no record exists.
func (c *messageCounts) load(i id) (*record, error) {
	value, err := c.db.Lookup(recordKey(i))
	if err != nil || value == nil {
		return nil, err
	}
	return decodeRecord(value)
}

// The type "known" is the part of a message's record that the store keeps in memory.
type known struct{ life, last capping.Instant }

// The real last call about a message is at most "rest" milliseconds later than the stored time of the last call.
const rest = capping.Instant(3_600_000)

// mostKnown is the largest number of message records that the cache in memory holds.
const mostKnown = 10_000

// Begin returns the life of the message's counts, that is, the time at which the counts began. A call stores its counts
// of sends under the life of the message's counts (the time at which these counts began). The method Begin creates a
// missing record of the message. If the record cannot be read, Begin returns no life, and the store does not count the
// sends of the call.
func (c *messageCounts) Begin(key messages.Key, now capping.Instant) Lives {
	return livesOf(idOf(key), c.begin(key, now))
}

func (c *messageCounts) begin(key messages.Key, now capping.Instant) (life capping.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := idOf(key)
	if k, ok := c.known[i]; ok && now-k.last < rest {
		return k.life
	}
	r, err := c.load(i)
	if err != nil {
		c.noteUnreadable(err)
		return 0
	}
	batch := c.db.NewBatch()
	defer batch.Close()
	if r == nil {
		r = newRecord(key, now)
	}
	if err := c.put(batch, i, r, now); err != nil {
		c.noteUnreadable(err)
		return 0
	}
	c.db.Commit(batch)
	return r.Life
}

func newRecord(key messages.Key, now capping.Instant) *record {
	return &record{Namespace: key.Message.Namespace, Message: key.Message.ID, Life: max(now, 1),
		Answers: messages.Answers{First: now}}
}

// The method "put" writes the record of a message on a channel, with the time of the last call. The caller of the
// method "put" must hold c.mu.
func (c *messageCounts) put(batch *pebble.Batch, i id, r *record, at capping.Instant) error {
	before := r.Last
	r.Last = max(before, at)
	value, err := r.encode()
	if err != nil {
		return err
	}
	if before > 0 && minute(before) != minute(r.Last) {
		_ = batch.Delete(listKey(before, i), nil) // fails only for indexed batches
	}
	_ = batch.Set(listKey(r.Last, i), listValue(r), nil)
	_ = batch.Set(recordKey(i), value, nil)
	c.remember(i, known{r.Life, r.Last})
	return nil
}

func (c *messageCounts) remember(i id, k known) {
	if len(c.known) >= mostKnown {
		clear(c.known) // records that are needed are loaded again
	}
	c.known[i] = k
}

// The method Counted returns the lives (times at which counts began) of a message's records on the given channel. For
// channel 0, Counted returns the lives on every channel, including sends without a channel.
func (c *messageCounts) Counted(token capping.Token, channel capping.Channel) Lives {
	if channel != 0 {
		return c.Known(token, channel)
	}
	var lives Lives
	prefix := recordKey(id{token: token})[:len(recordPrefix)+len(token)]
	err := c.each(prefix, func(key, value []byte) error {
		r, err := decodeRecord(value)
		if err == nil {
			lives = append(lives, life{id{token, capping.Channel(key[len(prefix)])}, r.Life})
		}
		return err
	})
	if err != nil {
		c.noteUnreadable(err)
	}
	return lives
}

// The method Known returns the life (time at which the counts began) of a message's record on exactly the given
// channel. For Known, channel 0 means sends without a channel.
func (c *messageCounts) Known(token capping.Token, channel capping.Channel) Lives {
	i := id{token, channel}
	return livesOf(i, c.life(i))
}

func livesOf(i id, begun capping.Instant) Lives {
	if begun == 0 {
		return nil
	}
	return Lives{{i, begun}}
}

// The method "life" returns the time at which the counts of a message on a channel began, or 0 if the store does not
// count the message.
func (c *messageCounts) life(i id) capping.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k, ok := c.known[i]; ok {
		return k.life
	}
	r, err := c.load(i)
	if err != nil {
		c.noteUnreadable(err)
	}
	if err != nil || r == nil {
		return 0
	}
	c.remember(i, known{r.Life, r.Last})
	return r.Life
}

// The type "life" identifies the counts of a message on one channel by the time at which the counts began.
type life struct {
	id
	begun capping.Instant
}

// Lives lists the counts of sends that a call changes, by message and channel. If Lives is empty, the store counts no
// sends of the call.
type Lives []life
