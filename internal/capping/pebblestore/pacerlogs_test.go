package pebblestore

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"capper/internal/capping/pebblestore/database"
	"capper/internal/pacing"
)

// clock is a clock that moves only with Advance.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newClock() *clock { return &clock{now: time.Now().Truncate(time.Hour)} }

// logsOn returns the pacer logs of a new database.
func logsOn(t *testing.T, clock *clock) *pacerLogs {
	db, err := database.Open(t.Context(), database.Config{Path: "/db", FS: vfs.NewMem(), Clock: clock.Now,
		ClockBound: 100_000 * time.Hour, CacheBytes: 1 << 20})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	l, err := openPacerLogs(db)
	require.NoError(t, err)
	return l
}

// TestLoadedLogsAreThoseInMemory takes permits of logs that stay in memory, and of logs that are loaded for
// each call. Both must grant the same after merges, forgotten pacers and sweeps.
func TestLoadedLogsAreThoseInMemory(t *testing.T) {
	t.Parallel()
	clock := newClock()
	kept, loaded := logsOn(t, clock), logsOn(t, clock)
	loaded.cache.most = 0
	r := rand.New(rand.NewPCG(1, 9))
	for n := range 5000 {
		clock.Advance(time.Duration(r.IntN(3000)) * time.Microsecond)
		if r.IntN(1500) == 0 {
			clock.Advance(20 * time.Hour)
		}
		pacer := r.IntN(3)
		ask := &pacing.Ask{
			Targets: []pacing.Target{{Pacer: fmt.Sprint("p", pacer), Message: []string{"", "0a", "0b"}[r.IntN(1+pacer)],
				Limits: []pacing.Limit{{Max: 9000, Window: time.Minute}}}},
			Permits: r.IntN(5), MaxWait: time.Duration(r.IntN(2)) * time.Minute,
		}
		if r.IntN(3) == 0 {
			ask.Request = pacing.Request{byte(r.IntN(256)), 1}
		}
		want, wantErr := kept.TakePermits(t.Context(), ask)
		got, err := loaded.TakePermits(t.Context(), ask)
		require.Equal(t, wantErr, err)
		require.Equal(t, want, got, "call %d", n)
		require.Empty(t, loaded.cache.logs)
		require.Zero(t, loaded.cache.used)
		for _, l := range []*pacerLogs{kept, loaded} {
			if n%1000 == 500 {
				require.NoError(t, l.ForgetPacer(t.Context(), "p2", ""))
			}
			if n%100 == 0 {
				_, err := l.Sweep(pacersSweepFrom(), 1000)
				require.NoError(t, err)
			}
		}
	}
}

// TestKeptForLimitsOfBefore checks that a log is kept for the longest window of all its limits, including
// earlier ones.
func TestKeptForLimitsOfBefore(t *testing.T) {
	t.Parallel()
	clock := newClock()
	l := logsOn(t, clock)
	long := []pacing.Limit{{Max: 3, Window: pacing.MaxWindow}}
	ask := &pacing.Ask{Targets: []pacing.Target{{Pacer: "p", Limits: long}}, Permits: 1}
	take := func(limits []pacing.Limit) int {
		ask.Targets[0].Limits = limits
		grant, err := l.TakePermits(t.Context(), ask)
		require.NoError(t, err)
		return grant.Granted
	}
	require.Equal(t, 1, take(long))
	require.Equal(t, 1, take([]pacing.Limit{{Max: 3, Window: time.Second}}))
	for _, step := range []struct{ days, granted int }{{15, 1}, {15, 0}, {2, 1}} {
		clock.Advance(time.Duration(step.days) * 24 * time.Hour)
		_, err := l.Sweep(pacersSweepFrom(), 10)
		require.NoError(t, err)
		require.Equal(t, step.granted, take(long))
	}
}

// TestPacerCacheIsBounded asks for many logs, most of them empty.
func TestPacerCacheIsBounded(t *testing.T) {
	t.Parallel()
	l := logsOn(t, newClock())
	l.cache.most = 20 * entryBytes
	for n := range 300 {
		ask := &pacing.Ask{Targets: []pacing.Target{{Pacer: "p", Message: fmt.Sprint(n),
			Limits: []pacing.Limit{{Max: 1, Window: time.Hour}}}}}
		ask.Permits = n % 2
		_, err := l.TakePermits(t.Context(), ask)
		require.NoError(t, err)
		require.LessOrEqual(t, l.cache.used, l.cache.most)
		require.LessOrEqual(t, len(l.cache.logs), 20)
		require.Equal(t, len(l.cache.logs), l.cache.recent.Len())
	}
	require.NotEmpty(t, l.cache.logs)
}

// TestStoredBytes fixes the stored bytes. A change of the bytes needs new version numbers.
func TestStoredBytes(t *testing.T) {
	t.Parallel()
	clock := &clock{now: time.UnixMicro(1_800_000_000_000_000)}
	l := logsOn(t, clock)
	ask := &pacing.Ask{
		Targets: []pacing.Target{{Pacer: "sms", Message: "0a",
			Limits: []pacing.Limit{{Max: 100, Window: time.Second}}}},
		Permits: 250, MaxWait: time.Minute, Request: pacing.Request{1, 2, 3},
	}
	_, err := l.TakePermits(t.Context(), ask)
	require.NoError(t, err)
	require.NoError(t, l.ForgetPacer(t.Context(), "carrier", ""))
	it, err := l.db.NewIter(nil)
	require.NoError(t, err)
	found := map[string]string{}
	for ok := it.SeekGE([]byte(lifePrefix)); ok; ok = it.Next() {
		if it.Key()[0] > 0 || string(it.Key()) == lifePrefix+"carrier" || string(it.Key()) == resetPrefix+"carrier" {
			found[hex.EncodeToString(it.Key())] = hex.EncodeToString(it.Value())
		}
	}
	require.NoError(t, it.Close())
	run := "06651728988000" + "00000f4240" + "000064" + "000000000000"
	require.Equal(t, map[string]string{
		hex.EncodeToString([]byte(lifePrefix + "carrier")):  "00000001",
		hex.EncodeToString([]byte(resetPrefix + "carrier")): "00000001" + "0006651728988000",
		"05" + "01020300000000000000000000000000": "01" + "000665172fbf8e00" +
			hex.EncodeToString(fingerprint(ask)) + "00" + "0000000000fa" + run,
		"06" + "00000000" + "03736d73" + "023061": "01" + "0006652b468e6480" + "00000000000000fa" +
			"00000001",
		"06" + "00000000" + "03736d73" + "023061" + "000000000000": run,
	}, found)
}

// TestStoredBytesOfSlotsAhead fixes the head of a log with slots ahead. A program that knows only headVersion
// refuses it, and a log without slots ahead has headVersion again.
func TestStoredBytesOfSlotsAhead(t *testing.T) {
	t.Parallel()
	clock := &clock{now: time.UnixMicro(1_800_000_000_000_000)}
	l := logsOn(t, clock)
	fast := pacing.Target{Pacer: "fast", Limits: []pacing.Limit{{Max: 1, Window: time.Millisecond}}}
	slow := pacing.Target{Pacer: "slow", Limits: []pacing.Limit{{Max: 1, Window: time.Second}}}
	take := func(permits int, targets ...pacing.Target) {
		grant, err := l.TakePermits(t.Context(), &pacing.Ask{Targets: targets, Permits: permits, MaxWait: time.Minute})
		require.NoError(t, err)
		require.Equal(t, permits, grant.Granted)
	}
	head := func() string {
		value, err := l.db.Lookup([]byte("\x06\x00\x00\x00\x00\x04fast\x00"))
		require.NoError(t, err)
		return hex.EncodeToString(value)
	}
	take(3, fast, slow)
	require.Equal(t, "02"+"0006652b468e6480"+"0000000000000001"+"00000001"+
		"06651728a7c240"+"00000f4240"+"000001"+"000002", head())
	l.cache.most = 0
	clock.Advance(time.Second)
	take(1, fast)
	require.Equal(t, "02"+"0006652b468e6480"+"0000000000000003"+"00000002"+
		"06651728b70480"+"0000000000"+"000001"+"000001", head())
	clock.Advance(time.Minute)
	take(1, fast)
	require.Equal(t, "01", head()[:2])
}

func fingerprint(ask *pacing.Ask) []byte {
	sum := ask.Fingerprint()
	return sum[:]
}

// TestGivesUp checks that a call whose caller has gone takes nothing.
func TestGivesUp(t *testing.T) {
	t.Parallel()
	l := logsOn(t, newClock())
	ask := &pacing.Ask{Targets: []pacing.Target{{Pacer: "p", Limits: []pacing.Limit{{Max: 1, Window: time.Hour}}}},
		Permits: 1}
	l.mu.Lock()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := l.TakePermits(ctx, ask)
	l.mu.Unlock()
	require.ErrorIs(t, err, context.DeadlineExceeded)
	grant, err := l.TakePermits(t.Context(), ask)
	require.NoError(t, err)
	require.Equal(t, 1, grant.Granted)
}

func FuzzStoredValues(f *testing.F) {
	f.Add(encodeHead(head{keep: 1_800_000_000_000_000, total: 5, runs: 1}))
	f.Add(encodeRequest(1_800_000_000_000_000, &pacing.Remembered{}))
	f.Fuzz(func(t *testing.T, value []byte) {
		if head, err := decodeHead(value); err == nil {
			require.Equal(t, value, encodeHead(head))
		} else {
			require.True(t, isDamage(err))
		}
		if expires, grant, err := decodeRequest(value); err == nil {
			require.Equal(t, value, encodeRequest(expires, grant))
		} else {
			require.True(t, isDamage(err))
		}
		for _, key := range [][]byte{append([]byte{database.KeyPacer}, value...), append([]byte{database.KeyRequest},
			value...)} {
			if log := pacerLogOf(key); log != nil {
				require.LessOrEqual(t, len(log), len(key))
			}
			isPast(key, value, 0)
		}
	})
}
