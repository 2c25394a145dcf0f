package pebblestore

import (
	"encoding/json"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
	"capper/internal/messages"
)

// record holds the stored counts of a message on one channel, except for its numbers of sends.
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

// load returns the record for the message and channel of the id, or nil if there is no record.
func (c *messageCounts) load(i id) (*record, error) {
	value, err := c.db.Lookup(recordKey(i))
	if err != nil || value == nil {
		return nil, err
	}
	return decodeRecord(value)
}

// known is the part of a message's record that the store caches in memory.
type known struct{ life, last capping.Instant }

// rest is the longest time in milliseconds by which a message's last call may be later than its stored time.
const rest = capping.Instant(3_600_000)

// mostKnown is the largest number of records of messages in the cache.
const mostKnown = 10_000

// Begin returns the life (the period since counts began) to which a call's sends count. If the message has no record,
// Begin creates it. If the message's record cannot be read, Begin returns no life, so that the call's sends are not
// counted.
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

// put writes the record of a message, with the given instant as the time of the last call. The caller of put holds
// c.mu.
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

// Counted returns the lives (periods since counts began) of the records that the token's message has on the channel.
// Channel 0 stands for every channel, and also for sends without a channel.
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

// Known returns the life (period since counts began) of the record that the token's message has on exactly the given
// channel. In Known, channel 0 stands only for sends without a channel.
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

// life returns the instant at which the counts of the message and channel began, or 0 if the message is not counted.
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

// life identifies a counted message on one channel, with the instant at which its counts began.
type life struct {
	id
	begun capping.Instant
}

// Lives lists the messages (each on one channel) whose sends a call counts. If Lives is empty, a call counts no sends.
type Lives []life
