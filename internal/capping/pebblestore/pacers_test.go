package pebblestore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"capper/internal/capping/pebblestore/database"
	"capper/internal/capping/storetest"
	"capper/internal/pacing"
)

// hundred returns an ask for permits of a pacer with a limit of a hundred a second.
func hundred(permits int, wait time.Duration) *pacing.Ask {
	return &pacing.Ask{
		Targets: []pacing.Target{{Pacer: "sms", Limits: []pacing.Limit{{Max: 100, Window: time.Second}}}},
		Permits: permits, MaxWait: wait,
	}
}

func take(t *testing.T, s *Store, ask *pacing.Ask) pacing.Grant {
	t.Helper()
	grant, err := s.TakePermits(context.Background(), ask)
	require.NoError(t, err)
	return grant
}

// TestPermits runs the life of a pacer with restarts between all steps.
func TestPermits(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	config := Config{Path: t.TempDir(), Clock: clock.Now, SweepInterval: time.Hour}
	s := reopen(t, config)
	restart := func() {
		require.NoError(t, s.Close())
		s = reopen(t, config)
	}

	grant := take(t, s, hundred(250, 2*time.Second))
	require.Equal(t, []pacing.WaitRun{{Every: time.Second, Burst: 100, Permits: 250}}, grant.Runs)
	require.Equal(t, 2*time.Second, grant.Next, "the newest slot has room")
	restart()
	clock.Advance(500 * time.Millisecond)
	asked := hundred(100, 3*time.Second)
	asked.Request = pacing.Request{1}
	grant = take(t, s, asked)
	require.Equal(t, 100, grant.Granted)
	require.Equal(t, 1500*time.Millisecond, grant.Runs[0].Wait)
	restart()
	clock.Advance(time.Second)
	again := take(t, s, asked)
	require.True(t, again.Replayed)
	require.Equal(t, 100, again.Granted)
	require.Equal(t, 500*time.Millisecond, again.Runs[0].Wait, "what remains of the wait")
	require.Equal(t, grant.Next-time.Second, again.Next, "nothing was taken")
	other := hundred(99, 3*time.Second)
	other.Request = asked.Request
	_, err := s.TakePermits(context.Background(), other)
	require.IsType(t, &pacing.ReuseError{}, err)

	require.NoError(t, s.ForgetPacer(context.Background(), "sms", ""))
	restart()
	require.Equal(t, 100, take(t, s, hundred(500, 0)).Granted, "as if nothing had been")
	require.True(t, take(t, s, asked).Replayed, "requests stay remembered")
	clock.Advance(3*time.Second + pacing.RememberFor)
	require.False(t, take(t, s, asked).Replayed)
	require.NoError(t, s.Close())
}

// TestPermitsGoBackAfterARestart forgets a pacer before a restart. Permits that were granted before this reset must not
// go back to the new log, and permits that were granted after it must.
func TestPermitsGoBackAfterARestart(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	config := Config{Path: t.TempDir(), Clock: clock.Now}
	s := reopen(t, config)
	granted := func(request byte) *pacing.Ask {
		ask := hundred(100, 10*time.Second)
		ask.Request = pacing.Request{request}
		require.Equal(t, 100, take(t, s, ask).Granted)
		return ask
	}
	give := func(ask *pacing.Ask) pacing.Returned {
		back, err := s.ReturnPermits(context.Background(), ask, 0)
		require.NoError(t, err)
		return back
	}
	take(t, s, hundred(100, 0))
	before := granted(1)
	clock.Advance(100 * time.Millisecond)
	require.NoError(t, s.ForgetPacer(context.Background(), "sms", ""))
	clock.Advance(11 * time.Second)
	take(t, s, hundred(100, 0))
	after := granted(2)
	require.NoError(t, s.Close())
	s = reopen(t, config)
	back := give(after)
	require.Equal(t, []any{100, []int{100}}, []any{back.Permits, back.Targets})

	again := granted(3)
	clock.Advance(-11*time.Second - 100*time.Millisecond) // the slots of the first request are ahead again
	require.NoError(t, s.Close())
	s = reopen(t, config)
	require.Equal(t, []int{0}, give(before).Targets)
	clock.Advance(11*time.Second + 100*time.Millisecond)
	require.Equal(t, []int{100}, give(again).Targets)

	// An earlier version stores no time of its resets: then the time of the opening counts.
	for request, stored := range map[byte][]byte{4: nil, 5: make([]byte, lifeSize+timeSize)} {
		clock.Advance(time.Minute)
		take(t, s, hundred(100, 0))
		late := granted(request)
		require.NoError(t, s.pacers.db.Write(context.Background(), func() error {
			batch := s.pacers.db.NewBatch()
			defer batch.Close()
			_ = batch.Delete(resetKey("sms"), nil)
			if stored != nil { // of an earlier life
				_ = batch.Set(resetKey("sms"), stored, nil)
			}
			s.pacers.db.Commit(batch)
			return s.pacers.db.Sync(context.Background())
		}))
		require.NoError(t, s.Close())
		s = reopen(t, config)
		require.Equal(t, []int{0}, give(late).Targets)
	}
	require.NoError(t, s.Close())
}

// TestPacersUnderAnyClock sets the clock back, which makes callers wait, and far ahead, which must fail
// every call and remove nothing.
func TestPacersUnderAnyClock(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	s := reopen(t, Config{Path: t.TempDir(), Clock: clock.Now, ClockBound: 30 * time.Hour,
		SweepInterval: time.Millisecond})
	require.Equal(t, 100, take(t, s, hundred(1000, 0)).Granted)
	clock.Advance(-20 * time.Minute)
	require.Zero(t, take(t, s, hundred(1, 0)).Granted)
	grant := take(t, s, hundred(1, time.Hour))
	require.Equal(t, 20*time.Minute+time.Second, grant.Runs[0].Wait)
	clock.Advance(20*time.Minute + 50*time.Hour)
	_, err := s.TakePermits(context.Background(), hundred(1, 0))
	require.ErrorContains(t, err, "ahead of the file system")
	_, err = s.pacers.Sweep(pacersSweepFrom(), 100)
	require.ErrorContains(t, err, "ahead of the file system")
	clock.Advance(-50 * time.Hour)
	require.Equal(t, 100, take(t, s, hundred(0, 0)).States[0].Used[0])
	require.NoError(t, s.Close())
}

// sweepPacers runs a whole pass of the sweep in steps of most keys.
func sweepPacers(t *testing.T, s *Store, most int) {
	for from := pacersSweepFrom(); from != nil; {
		var err error
		from, err = s.pacers.Sweep(from, most)
		require.NoError(t, err)
	}
}

// TestSweepPacers checks that the sweep empties an idle store.
func TestSweepPacers(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	s := reopen(t, Config{Path: t.TempDir(), Clock: clock.Now, SweepInterval: time.Hour})
	for i := range 30 {
		ask := hundred(10, 0)
		ask.Targets[0].Message = fmt.Sprintf("%012x", i)
		ask.Request = pacing.Request{byte(i + 1)}
		take(t, s, ask)
		clock.Advance(time.Second)
	}
	sweep := func() (left int) {
		sweepPacers(t, s, 7)
		return keys(t, s)
	}
	require.Equal(t, 90, sweep())
	clock.Advance(pacing.RememberFor - 15*time.Second)
	require.Equal(t, 74, sweep())
	clock.Advance(24*time.Hour - 15*time.Second - pacing.RememberFor)
	require.Equal(t, 58, sweep())
	clock.Advance(15 * time.Second)
	require.Equal(t, 28, sweep())
	clock.Advance(15 * time.Second)
	require.Zero(t, sweep())
	require.NoError(t, s.Close())
}

// TestDamagedPacer damages a stored log. Only calls for this log must fail, and forgetting the pacer must
// repair it.
func TestDamagedPacer(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	config := Config{Path: t.TempDir(), Clock: clock.Now, SweepInterval: time.Hour}
	for _, name := range []string{"head", "head gone", "run", "run gone", "run of another number"} {
		t.Run(name, func(t *testing.T) {
			config.Path = t.TempDir()
			s := reopen(t, config)
			clock.Advance(time.Hour)
			for _, permits := range []int{7, 9, 7} {
				take(t, s, hundred(permits, 0))
				clock.Advance(time.Microsecond)
			}
			head := []byte("\x06\x00\x00\x00\x00\x03sms\x00")
			second := append(append([]byte(nil), head...), 0, 0, 0, 0, 0, 7)
			value, err := s.db.Lookup(second)
			require.NoError(t, err)
			batch := s.db.NewBatch()
			switch name {
			case "head":
				err = batch.Set(head, []byte{1, 2, 3}, nil)
			case "head gone":
				err = batch.Delete(head, nil)
			case "run":
				err = batch.Set(second, value[1:], nil)
			case "run gone":
				err = batch.Delete(second, nil)
			case "run of another number":
				value[len(value)-1]++
				err = batch.Set(second, value, nil)
			}
			require.NoError(t, err)
			require.NoError(t, batch.Commit(pebble.NoSync))
			require.NoError(t, s.Close())
			s = reopen(t, config)
			for range 2 {
				_, err = s.TakePermits(context.Background(), hundred(1, 0))
				require.ErrorContains(t, err, `"sms"`)
				require.ErrorContains(t, err, "DELETE /v1/pacers/sms")
			}
			other := hundred(1, 0)
			other.Targets[0].Pacer = "smsc"
			require.Equal(t, 1, take(t, s, other).Granted)
			require.NoError(t, s.ForgetPacer(context.Background(), "sms", ""))
			require.Equal(t, 100, take(t, s, hundred(1000, 0)).Granted)
			require.NoError(t, s.Close())
		})
	}
}

// TestDamagedRequest damages the stored grant of a request. Only this request must fail, until it expires.
func TestDamagedRequest(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	s := reopen(t, Config{Path: t.TempDir(), Clock: clock.Now, SweepInterval: time.Hour})
	ask, other := hundred(7, 0), hundred(7, 0)
	ask.Request, other.Request = pacing.Request{1}, pacing.Request{2}
	take(t, s, ask)
	take(t, s, other)
	key := append([]byte{database.KeyRequest}, ask.Request[:]...)
	value, err := s.db.Lookup(key)
	require.NoError(t, err)
	require.NoError(t, s.db.Set(key, value[:len(value)-1], pebble.Sync))
	_, err = s.TakePermits(context.Background(), ask)
	require.ErrorContains(t, err, "request 0100")
	require.True(t, take(t, s, other).Replayed)
	require.Equal(t, 14, take(t, s, hundred(0, 0)).States[0].Used[0])
	clock.Advance(pacing.RememberFor)
	sweepPacers(t, s, 100)
	require.False(t, take(t, s, ask).Replayed)
	require.NoError(t, s.Close())
}
