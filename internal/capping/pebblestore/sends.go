package pebblestore

import (
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
	"capper/internal/messages"
)

// A Stripe caches counts of sends for one stripe (group of users with a common lock). The caller must hold the lock of
// the stripe (group of users with a common lock).
type Stripe struct{ sends map[cell]*sends }

// A cell identifies a count of sends by message, channel and the time at which the counts began. Each stripe (group of
// users with a common lock) has its own count for each cell.
type cell life

type sends struct {
	messages.Sends
	unreadable bool // an unreadable count is not increased
}

// mostCells is the maximum number of cached counts of sends in one stripe (group of users with a common lock).
const mostCells = 64

// A Tally holds the numbers of sends that one portion of a call adds and removes, by message and channel.
type Tally []tallied

// The type "tallied" holds the numbers of sends of one message on one channel in a Tally.
type tallied struct {
	id
	messages.Sends
}

// The method Of returns the numbers of sends that the Tally holds for one message on the channel; the token is the
// short hash of this message.
func (t *Tally) Of(token capping.Token, channel capping.Channel) *messages.Sends {
	for i := range *t {
		if (*t)[i].channel == channel && (*t)[i].token == token {
			return &(*t)[i].Sends
		}
	}
	*t = append(*t, tallied{id: id{token, channel}})
	return &(*t)[len(*t)-1].Sends
}

// The method Count adds a Tally to the stored counts of sends of one stripe (group of users with a common lock). The
// argument "batch" of Count is the database batch with the changed logs of the users. The method Count leaves out
// messages that are not in the argument "lives", because the store does not count their sends.
func (c *messageCounts) Count(batch *pebble.Batch, stripe *Stripe, number byte, lives Lives, tally Tally) {
	for _, life := range lives {
		if add := *tally.Of(life.token, life.channel); add != (messages.Sends{}) {
			c.count(batch, stripe, number, cell(life), add)
		}
	}
}

func (c *messageCounts) count(batch *pebble.Batch, stripe *Stripe, number byte, at cell, add messages.Sends) {
	key := append(sendsKey(at.id, at.begun), number)
	counted := stripe.sends[at]
	if counted == nil {
		counted = c.loadSends(key)
		if stripe.sends == nil || len(stripe.sends) >= mostCells {
			stripe.sends = make(map[cell]*sends) // counts that are needed are loaded again
		}
		stripe.sends[at] = counted
	}
	if counted.unreadable {
		return
	}
	counted.Recorded += add.Recorded
	counted.Released += add.Released
	_ = batch.Set(key, encodeSends(counted.Sends), nil) // fails only for indexed batches
}

func (c *messageCounts) loadSends(key []byte) *sends {
	value, err := c.db.Lookup(key)
	if err == nil && value == nil {
		return &sends{}
	}
	var found messages.Sends
	if err == nil {
		found, err = decodeSends(value)
	}
	if err != nil {
		c.noteUnreadable(err)
	}
	return &sends{found, err != nil}
}

// The method "sum" returns the numbers of recorded and released sends of a message since its counts began. The method
// "sum" adds the counts of all stripes (groups of users with a common lock).
func (c *messageCounts) sum(at cell) (total messages.Sends, err error) {
	err = c.each(sendsKey(at.id, at.begun), func(_, value []byte) error {
		part, err := decodeSends(value)
		total.Recorded += part.Recorded
		total.Released += part.Released
		return err
	})
	return total, err
}

// sendsVersion is the first byte of a stored count of sends.
const (
	sendsVersion = 1
	sendsSize    = 17
)

func encodeSends(s messages.Sends) []byte {
	value := append(make([]byte, 0, sendsSize), sendsVersion)
	value = binary.BigEndian.AppendUint64(value, uint64(s.Recorded))
	return binary.BigEndian.AppendUint64(value, uint64(s.Released))
}

func decodeSends(value []byte) (messages.Sends, error) {
	if len(value) != sendsSize || value[0] != sendsVersion {
		return messages.Sends{}, fmt.Errorf(
			"stored counts %x of a message's sends must have %d bytes and begin with version %d",
			value, sendsSize,
			sendsVersion)
	}
	return messages.Sends{
		Recorded: int64(binary.BigEndian.Uint64(value[1:])), Released: int64(binary.BigEndian.Uint64(value[9:])),
	}, nil
}
