package pebblestore

import (
	"bytes"
	"encoding/binary"
	"slices"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
	"capper/internal/messages"
)

// What keys begin with. They lie behind all other keys of database.KeyMeta, which have
// names in letters.
var (
	recordPrefix = []byte{database.KeyMeta, 0xFF, 1}
	sendsPrefix  = []byte{database.KeyMeta, 0xFF, 2}
	listPrefix   = []byte{database.KeyMeta, 0xFF, 3}
)

// id is a campaign as keys name it.
type id struct {
	token   capping.Token
	channel capping.Channel
}

func idOf(key messages.Key) id { return id{key.Message.Token(), key.Channel} }

const idSize = len(capping.Token{}) + 1

func (i id) appendTo(key []byte) []byte { return append(append(key, i.token[:]...), byte(i.channel)) }

// idAt is the id at the start of b, which has idSize bytes at least.
func idAt(b []byte) id { return id{capping.Token(b), capping.Channel(b[idSize-1])} }

func recordKey(i id) []byte { return i.appendTo(slices.Clone(recordPrefix)) }

// sendsKey is what the keys of a life's sends begin with.
func sendsKey(i id, life capping.Instant) []byte {
	return binary.BigEndian.AppendUint64(i.appendTo(slices.Clone(sendsPrefix)), uint64(life))
}

// minute is an instant, as the list is in order of.
func minute(at capping.Instant) int64 { return int64(max(at, 0)) / 60_000 }

func listKey(at capping.Instant, i id) []byte {
	number := binary.BigEndian.AppendUint64(nil, uint64(minute(at)))
	return i.appendTo(append(slices.Clone(listPrefix), number[3:]...))
}

// listed is the campaign of a key of the list, and its minute.
func listed(key []byte) (i id, at int64, ok bool) {
	rest, ok := bytes.CutPrefix(key, listPrefix)
	if !ok || len(rest) != 5+idSize {
		return id{}, 0, false
	}
	return idAt(rest[5:]), int64(rest[0])<<32 | int64(binary.BigEndian.Uint32(rest[1:])), true
}
