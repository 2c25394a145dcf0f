package pebblestore

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/storetest"
)

// having returns a policy with a daily limit and the channels.
func having(channels map[string]capping.Channel) *capping.Policy {
	return &capping.Policy{Channels: channels, Default: []capping.Limit{{Name: "daily", Max: 1, Window: day}}}
}

type named = map[string]capping.Channel

// TestAChannelKeepsItsNumber checks that a store refuses a policy that gives a channel of stored sends another number,
// or gives the channel's number to another channel, also after restarts, until no log contains the channel.
func TestAChannelKeepsItsNumber(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	config := Config{Path: filepath.Join(t.TempDir(), "log.db"), Clock: clock.Now, ClockBound: farAhead}
	s, err := Open(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	again := func() {
		require.NoError(t, s.Close())
		s, err = Open(t.Context(), config)
		require.NoError(t, err)
	}
	refuses := func(channels named, why string) {
		t.Helper()
		require.ErrorContains(t, s.Announce(t.Context(), having(channels)), why)
	}
	takes := func(channels named) {
		t.Helper()
		require.NoError(t, s.Announce(t.Context(), having(channels)))
	}

	takes(named{"push": 1, "email": 2})
	takes(named{"push": 2, "email": 1}) // no send is recorded yet
	takes(named{"push": 1, "email": 2})
	requireAll(t, capping.Allowed, under(t, s, "a", 1, manyUsers(3), day))
	for range 2 {
		refuses(named{"push": 2, "email": 1}, "channels.email: has the numeric id 1 in the configuration, but in "+
			"stored sends channel email has the numeric id 2: give a new channel a numeric id that was never used")
		refuses(named{"push": 3}, "in stored sends channel push has the numeric id 1")
		refuses(named{"push": 1, "mail": 2}, "channels.mail: has the numeric id 2 in the configuration, but in stored "+
			"sends channel email has the numeric id 2")
		takes(named{"push": 1, "email": 2, "sms": 3})
		again()
	}
	takes(named{"push": 1})
	refuses(named{"push": 1, "mail": 2}, "channel email has the numeric id 2")
	again()
	clock.Advance(2*day - time.Minute)
	refuses(named{"push": 1, "mail": 2}, "channel email has the numeric id 2")
	clock.Advance(time.Minute)
	takes(named{"push": 1, "mail": 2})
	refuses(named{"push": 4}, "in stored sends channel push has the numeric id 1")
}

// TestAStoreOfAnEarlierVersionTakesItsChannels checks that a store without stored channels takes those of the first
// policy.
func TestAStoreOfAnEarlierVersionTakesItsChannels(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	config := Config{Path: filepath.Join(t.TempDir(), "log.db"), Clock: clock.Now, ClockBound: farAhead}
	s, err := Open(t.Context(), config)
	require.NoError(t, err)
	requireAll(t, capping.Allowed, under(t, s, "a", 1, manyUsers(3), day))
	require.NoError(t, s.Close())
	s, err = Open(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	require.NoError(t, s.Announce(t.Context(), having(named{"push": 2})))
	require.ErrorContains(t, s.Announce(t.Context(), having(named{"push": 1})), "push has the numeric id 2")
}

func TestDecodeChannels(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"\x02{}": "format version 1", "\x01{": "decode list of channels", "\x01[]": "decode list of channels",
	} {
		_, err := decodeChannels([]byte(text))
		require.ErrorContains(t, err, want)
	}
	c, err := decodeChannels(nil)
	require.NoError(t, err)
	require.Empty(t, c)
}
