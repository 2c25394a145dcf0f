package pebblestore

import (
	"bytes"
	"encoding/binary"
	"slices"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
	"capper/internal/messages"
)

// These variables are the prefixes of the database keys for counts of messages. The byte 0xFF sorts the keys for counts
// after all other keys of database.KeyMeta, whose names begin with a letter.
var (
	recordPrefix = []byte{database.KeyMeta, 0xFF, 1}
	sendsPrefix  = []byte{database.KeyMeta, 0xFF, 2}
	listPrefix   = []byte{database.KeyMeta, 0xFF, 3}
	titlePrefix  = []byte{database.KeyMeta, 0xFF, 7} // the numbers 4 to 6 are in changekeys.go, 8 is in pacerleases.go
)

// An id identifies a message on one channel in the keys of the database, by the message's token (short hash) and the
// channel.
type id struct {
	token   capping.Token
	channel capping.Channel
}

func idOf(key messages.Key) id { return id{key.Message.Token(), key.Channel} }

const idSize = len(capping.Token{}) + 1

func (i id) appendTo(key []byte) []byte { return append(append(key, i.token[:]...), byte(i.channel)) }

// idAt decodes the id (message and channel) at the beginning of b, which must have at least idSize bytes.
func idAt(b []byte) id { return id{capping.Token(b), capping.Channel(b[idSize-1])} }

func recordKey(i id) []byte { return i.appendTo(slices.Clone(recordPrefix)) }

// sendsKey returns the prefix of the keys for a message's counts of sends in one life (time since these counts began).
func sendsKey(i id, life capping.Instant) []byte {
	return binary.BigEndian.AppendUint64(i.appendTo(slices.Clone(sendsPrefix)), uint64(life))
}

// The function "minute" returns the instant in whole minutes. In the list of messages, keys are sorted by the minute of
// each message's last call.
func minute(at capping.Instant) int64 { return int64(max(at, 0)) / 60_000 }

func listKey(at capping.Instant, i id) []byte {
	number := binary.BigEndian.AppendUint64(nil, uint64(minute(at)))
	return i.appendTo(append(slices.Clone(listPrefix), number[3:]...))
}

// The function "listed" decodes a key of the list of messages: the message, the channel and the minute of the last
// call.
func listed(key []byte) (i id, at int64, ok bool) {
	rest, ok := bytes.CutPrefix(key, listPrefix)
	if !ok || len(rest) != 5+idSize {
		return id{}, 0, false
	}
	return idAt(rest[5:]), int64(rest[0])<<32 | int64(binary.BigEndian.Uint32(rest[1:])), true
}
