package gate

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/server/wire"
	"capper/internal/testkit"
)

// wrong tries wrong keys until one is refused, and returns their number and the wait.
func wrong(t *testing.T, g *Guesses, address, key string) (tries int, wait time.Duration) {
	t.Helper()
	for ; tries < 1000; tries++ {
		if _, err := g.Try(address, fmt.Sprint(key, tries)); err != nil {
			f := wire.FailureOf(err)
			require.EqualValues(t, api.CodeRateLimited, f.Code)
			return tries, f.RetryAfter
		}
	}
	return tries, 0
}

func TestWrongKeysAreSlowedDown(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClockAt(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC))
	g := NewGuesses(clock.Now)
	tries, wait := wrong(t, g, "10.0.0.1", "reader.guess-")
	require.Equal(t, 10, tries)
	require.Equal(t, 2*time.Second, wait)
	clock.Advance(wait - time.Millisecond)
	_, err := g.Try("10.0.0.1", "reader.secret")
	require.Equal(t, time.Millisecond, wire.FailureOf(err).RetryAfter)
	clock.Advance(time.Millisecond)
	tries, wait = wrong(t, g, "10.0.0.1", "reader.guess-")
	require.Equal(t, 1, tries)
	require.Equal(t, 2*time.Second, wait, "refused tries make nobody wait longer")

	tries, _ = wrong(t, g, "10.0.0.1", "colleague.guess-")
	require.Equal(t, 10, tries, "another key of the same address")
	tries, _ = wrong(t, g, "10.0.0.2", "reader.guess-")
	require.Equal(t, 10, tries, "another address")
	clock.Advance(20 * time.Second)
	tries, _ = wrong(t, g, "10.0.0.1", "reader.guess-")
	require.Equal(t, 10, tries)
}

func TestRightKeysCostNothing(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClockAt(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC))
	g := NewGuesses(clock.Now)
	for range 100 {
		right, err := g.Try("10.0.0.1", "reader.secret")
		require.NoError(t, err)
		right()
	}
	tries, _ := wrong(t, g, "10.0.0.1", "reader.guess-")
	require.Equal(t, 10, tries)
}

// TestGuestsAreBounded checks that many addresses and made-up ids do not let anybody guess faster.
func TestGuestsAreBounded(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClockAt(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC))
	g := NewGuesses(clock.Now)
	wrong(t, g, "10.0.0.1", "reader.guess-")
	var last func()
	for i := range 10_000 {
		right, err := g.Try("10.0.0.1", fmt.Sprintf("made-up-%d.x", i))
		require.NoError(t, err)
		last = right
	}
	require.Len(t, g.full, mostGuests)
	tries, wait := wrong(t, g, "10.0.0.1", "reader.guess-")
	require.Zero(t, tries, "the most wrong keys are forgotten last")
	require.Equal(t, 2*time.Second, wait)
	clock.Advance(time.Minute)
	_, err := g.Try("10.0.0.3", "reader.guess")
	require.NoError(t, err)
	require.Len(t, g.full, 1, "those who may try freely again are forgotten")
	last() // whose guest is forgotten
	require.Len(t, g.full, 1)
}
