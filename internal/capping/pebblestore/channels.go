package pebblestore

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"sync"

	"capper/internal/capping"
)

// channelsKey is the database key of the channels that stored sends may contain.
var channelsKey = []byte("\x00channels")

// channelsVersion is the first byte of the value of channelsKey.
const channelsVersion = 1

// A storedChannel is a channel that stored sends may contain. The logs of users contain only the channel's number, and
// not its name.
type storedChannel struct {
	Number capping.Channel `json:"number"`
	// Until is the time from which no policy has had the channel. Until is 0 if the latest policy has the channel.
	Until capping.Instant `json:"until,omitempty"`
}

// The type storedChannels holds the channels that stored sends may contain, by name.
type storedChannels map[string]storedChannel

// notedChannels holds the store's channels in memory.
type notedChannels struct {
	mu    sync.Mutex
	noted storedChannels
}

// The method "with" returns the list of channels that the database must hold when a policy with the given channels
// takes effect. The result of the method "with" omits a channel that no policy has had for twice the given retention
// (storage time of sends, in milliseconds). No log contains an omitted channel any more. The method "with" returns an
// error if stored sends have another number for a channel of the policy, or another channel for its number.
func (s storedChannels) with(
	channels map[string]capping.Channel, now capping.Instant, retention int64,
) (storedChannels, error) {
	next, names := storedChannels{}, map[capping.Channel]string{}
	for name, c := range s {
		if c.Until == 0 || c.Until+2*capping.Instant(retention) > now {
			next[name], names[c.Number] = c, name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(channels)) {
		number := channels[name]
		holder, taken := names[number]
		if c, known := next[name]; known && c.Number != number {
			return nil, numberConflict(name, number, name, c.Number)
		}
		if taken && holder != name {
			return nil, numberConflict(name, number, holder, number)
		}
	}
	for name, c := range next {
		if _, has := channels[name]; !has && c.Until == 0 {
			c.Until = now
			next[name] = c
		}
	}
	for name, number := range channels {
		next[name] = storedChannel{Number: number}
	}
	return next, nil
}

func numberConflict(name string, number capping.Channel, stored string, has capping.Channel) error {
	return capping.ChannelConflict(name, strconv.Itoa(int(number)), stored, strconv.Itoa(int(has)))
}

// The method Announce tells the store the policy that the service is about to use. If the numbers of the policy's
// channels contradict the numbers in stored sends, Announce returns an error, and the service must not use the policy.
// A store that has never recorded a send accepts a policy with any channel numbers.
func (s *Store) Announce(ctx context.Context, p *capping.Policy) error {
	s.channels.mu.Lock()
	defer s.channels.mu.Unlock()
	noted, retained := s.channels.noted, s.retained.current()
	if len(retained) == 0 {
		noted = nil
	}
	now, err := s.db.Now()
	if err != nil {
		now = 0 // if the clock is wrong, no channel leaves the list
	}
	next, err := noted.with(p.Channels, now, max(retained.longest(now).millis, p.Retention(0).Milliseconds()))
	if err != nil || maps.Equal(noted, next) {
		return err
	}
	batch := s.db.NewBatch()
	defer batch.Close()
	_ = batch.Set(channelsKey, encodeChannels(next), nil) // fails only for indexed batches
	s.db.Commit(batch)
	if err := s.db.Sync(ctx); err != nil {
		return err
	}
	s.channels.noted = next
	return nil
}

// loadChannels reads the store's channels from the database. Earlier versions of capper stored no channels.
func (s *Store) loadChannels() error {
	value, err := s.db.Lookup(channelsKey)
	if err != nil {
		return err
	}
	s.channels.noted, err = decodeChannels(value)
	return err
}

func encodeChannels(c storedChannels) []byte {
	text, _ := json.Marshal(c) // never fails for numbers
	return append([]byte{channelsVersion}, text...)
}

// decodeChannels returns the stored channels, or no channels for an empty value.
func decodeChannels(value []byte) (storedChannels, error) {
	if len(value) == 0 {
		return storedChannels{}, nil
	}
	c, err := decodeVersioned[storedChannels](value, channelsVersion, "list of channels")
	if err != nil {
		return nil, err
	}
	return *c, nil
}
