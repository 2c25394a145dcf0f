package capping

import (
	"encoding/binary"
	"fmt"
	"time"
)

// UserID identifies a user in stores, logs and audits. In a deployment with dense ids (32-bit integers), the UserID is
// the dense id itself: 0 to MaxDense.
type UserID uint64

// MaxDense is the largest dense id (32-bit integer), as in the roaring format.
const MaxDense UserID = 1<<32 - 1

// The function Dense returns the dense id of a user, in a deployment with dense ids (32-bit integers). Code with dense
// ids in bitmaps, files or responses calls Dense to convert users.
func Dense(user UserID) uint32 { return uint32(user) }

// AppendDense appends the dense ids of users to dst.
func AppendDense(dst []uint32, users []UserID) []uint32 {
	for _, user := range users {
		dst = append(dst, Dense(user))
	}
	return dst
}

// AppendUsers appends the users who have the given dense ids (32-bit integers) to dst.
func AppendUsers(dst []UserID, ids []uint32) []UserID {
	for _, id := range ids {
		dst = append(dst, UserID(id))
	}
	return dst
}

// Channel is the stable number of a configured channel, 1 to 255. The channel 0 means that a send has no channel.
type Channel uint8

// Instant is a time in milliseconds since 2024-01-01T00:00:00Z. Log entries store times as Instants. Instants in a log
// are 0 to Never-1 (year 2058).
type Instant int64

// Never is an instant later than every instant in a log.
const Never Instant = 1<<40 - 1

// EpochUnixMillis is the Unix time of Instant 0, in milliseconds.
const EpochUnixMillis = 1704067200000

// InstantOf converts the time t to an Instant, and drops fractions of a millisecond.
func InstantOf(t time.Time) Instant { return Instant(t.UnixMilli() - EpochUnixMillis) }

// Time returns the instant as a time in UTC.
func (i Instant) Time() time.Time { return time.UnixMilli(int64(i) + EpochUnixMillis).UTC() }

// EntrySize is the size of one log entry in bytes: the Instant (5 bytes, big endian), the channel (1 byte) and the
// token (6 bytes of the message's hash).
const EntrySize = 12

// LogBound is the largest number of entries of one channel in a log, and the largest Max of a limit.
const LogBound = 1000

// Entry is one recorded send.
type Entry struct {
	At      Instant
	Channel Channel
	Token   Token
}

// Log holds the recorded sends of one user in time order, EntrySize bytes for each send. The empty log belongs to a
// user without sends.
type Log []byte

// Len returns the number of entries.
func (l Log) Len() int { return len(l) / EntrySize }

// The method At returns the instant of entry i. Entry 0 is the oldest.
func (l Log) At(i int) Instant {
	e := l[i*EntrySize:]
	return Instant(e[0])<<32 | Instant(binary.BigEndian.Uint32(e[1:5]))
}

// Channel returns the channel of entry i.
func (l Log) Channel(i int) Channel { return Channel(l[i*EntrySize+5]) }

// Entry returns entry i of the log.
func (l Log) Entry(i int) Entry {
	return Entry{l.At(i), l.Channel(i), Token(l[i*EntrySize+6 : i*EntrySize+12])}
}

// Entries returns the entries of the log, oldest first.
func (l Log) Entries() []Entry {
	entries := make([]Entry, l.Len())
	for i := range entries {
		entries[i] = l.Entry(i)
	}
	return entries
}

// Check returns an error when the bytes are not a valid log: the length must be a multiple of EntrySize, and
// the entries must be in time order.
func (l Log) Check() error {
	if len(l)%EntrySize != 0 {
		return fmt.Errorf("stored log of a user's sends: the size must be a multiple of %d bytes, got %d",
			EntrySize, len(l))
	}
	for i := 1; i < l.Len(); i++ {
		if l.At(i) < l.At(i-1) {
			return fmt.Errorf(
				"stored log of a user's sends must be sorted by time, but entry %d is earlier than the previous entry",
				i)
		}
	}
	return nil
}

// The method "find" returns the index of the newest log entry with the token (short hash of a message) and the channel.
// If no entry later than the time "horizon" has the token and the channel, "find" returns -1.
func (l Log) find(channel Channel, token Token, horizon Instant) int {
	for i := l.Len() - 1; i >= 0; i-- {
		if Token(l[i*EntrySize+6:(i+1)*EntrySize]) == token && l.Channel(i) == channel {
			if l.At(i) > horizon {
				return i
			}
			return -1
		}
	}
	return -1
}

// The method Record adds the entry e to the log, appends the resulting log to dst, and returns the extended dst. The
// method Record omits log entries that are not later than the time "horizon". The method Record gives the entry e at
// least the time of the newest log entry, and keeps at most LogBound entries of e's channel.
func (l Log) Record(dst []byte, e Entry, horizon Instant) []byte {
	l = l.Live(horizon)
	if n := l.Len(); n > 0 {
		e.At = max(e.At, l.At(n-1))
	}
	drop := l.overflow(e.Channel)
	if drop >= 0 {
		dst = append(dst, l[:drop*EntrySize]...)
		l = l[(drop+1)*EntrySize:]
	}
	return e.append(append(dst, l...))
}

// The method "overflow" finds the entry to drop: the oldest entry of a channel that already has LogBound entries. For a
// channel with fewer entries, "overflow" returns -1.
func (l Log) overflow(channel Channel) int {
	if l.Len() < LogBound {
		return -1
	}
	oldest, n := -1, 0
	for i := range l.Len() {
		if l.Channel(i) != channel {
			continue
		}
		if oldest < 0 {
			oldest = i
		}
		n++
	}
	if n < LogBound {
		return -1
	}
	return oldest
}

// The method Live returns the log entries that are later than the time "horizon". The log from Live shares the bytes of
// l.
func (l Log) Live(horizon Instant) Log {
	i := 0
	for i < l.Len() && l.At(i) <= horizon {
		i++
	}
	return l[i*EntrySize:]
}

// The method Release appends the log to dst, but omits the entries with the token (short hash of a message) on the
// channel. It reports whether it omitted any entries. The method Release keeps entries with a time in the period
// "later", because these sends were certainly recorded after the call. Channel 0 stands for every channel, and also for
// entries without a channel.
func (l Log) Release(dst []byte, channel Channel, token Token, later Period) (log []byte, released bool) {
	for i := range l.Len() {
		e := l[i*EntrySize : (i+1)*EntrySize]
		if Token(e[6:]) == token && (channel == 0 || l.Channel(i) == channel) && !later.Has(l.At(i)) {
			released = true
			continue
		}
		dst = append(dst, e...)
	}
	return dst, released
}

func (e Entry) append(dst []byte) []byte {
	dst = append(dst, byte(e.At>>32), byte(e.At>>24), byte(e.At>>16), byte(e.At>>8), byte(e.At), byte(e.Channel))
	return append(dst, e.Token[:]...)
}
