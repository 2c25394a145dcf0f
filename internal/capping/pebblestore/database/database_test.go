package database

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"capper/internal/capping"
	"capper/internal/testkit"
)

func TestMain(m *testing.M) {
	os.Exit(testkit.NoLeaks(m.Run(),
		goleak.IgnoreTopFunction("capper/internal/capping/pebblestore/database.pebbleLogger.Fatalf")))
}

func reopen(t *testing.T, config Config) *DB {
	t.Helper()
	d, err := Open(context.Background(), config)
	require.NoError(t, err)
	return d
}

// put stores the value durably for the users.
func put(t *testing.T, d *DB, value string, users ...capping.UserID) {
	t.Helper()
	require.NoError(t, d.Write(context.Background(), func() error {
		batch := d.NewBatch()
		defer batch.Close()
		for _, user := range users {
			d.Put(batch, user, []byte(value))
		}
		d.Commit(batch)
		return d.Sync(context.Background())
	}))
}

// value returns the stored value of the user.
func value(t *testing.T, d *DB, user capping.UserID) string {
	t.Helper()
	reader := d.NewReader()
	defer reader.End()
	value, err := reader.Value(user)
	require.NoError(t, err)
	return string(value)
}

// TestMarkLags kills a store repeatedly: the mark in the file must never be ahead of the database.
func TestMarkLags(t *testing.T) {
	t.Parallel()
	config := Config{Path: t.TempDir()}
	for range 3 {
		d := reopen(t, config)
		for i := range 50 {
			require.NoError(t, d.Mark())
			if i%10 == 0 {
				put(t, d, "sent", 1, 2, 3)
			}
		}
		d.disk.Freeze() // acts like a power cut on the files
		_ = d.takeDown(context.Canceled)
		_ = d.Close()
	}
	content, err := os.ReadFile(config.Path + ".id")
	require.NoError(t, err)
	require.True(t, bytes.Contains(content, []byte(`"mark":15`)), string(content))
}

// TestFatal makes Pebble report a fatal error in a call. All callers must get an error, including readers,
// and Close must not wait without end.
func TestFatal(t *testing.T) {
	t.Parallel()
	config := Config{Path: t.TempDir()}
	d := reopen(t, config)
	put(t, d, "sent", 1)
	err := d.Write(context.Background(), func() error {
		pebbleLogger{d}.Fatalf("no %s left", "luck")
		return nil
	})
	require.ErrorContains(t, err, "no luck left")
	health := d.Health(context.Background())
	require.Equal(t, "down", health.State)
	require.Contains(t, health.Error, "out of service until capper restarts")
	require.Contains(t, health.Error, "no luck left")
	never := func() error { t.Error("nobody calls Pebble any more"); return nil }
	require.ErrorContains(t, d.Write(context.Background(), never), "no luck left")
	require.ErrorContains(t, d.Read(context.Background(), never), "no luck left")
	require.NoError(t, d.Close())
	require.NoError(t, d.DB.Close()) // Pebble is healthy here; this ends its goroutines
	d = reopen(t, config)
	require.Equal(t, "sent", value(t, d, 1))
	require.NoError(t, d.Close())
}

// TestMarkAfterCopy checks that a write after a copy sets a new mark beside the directory, even during
// continuous writes. A restore of the copy then needs confirmation.
func TestMarkAfterCopy(t *testing.T) {
	t.Parallel()
	config := Config{Path: t.TempDir()}
	d := reopen(t, config)
	put(t, d, "before", 1)
	require.NoError(t, d.Watch(time.Now()))
	made, end, err := d.Copy()
	require.NoError(t, err)
	require.NoError(t, end())
	mark := func() uint64 {
		known, err := known(config.Path)
		require.NoError(t, err)
		return known.Mark
	}
	require.NoError(t, d.Watch(time.Now()))
	require.Equal(t, made.Mark, mark(), "nothing came after")
	for i := range 3 { // each call of Watch sees more writes
		put(t, d, "after", 2)
		require.NoError(t, d.Watch(time.Now()))
		require.Equal(t, made.Mark+1, mark(), "look %d", i)
	}
	require.NoError(t, d.Close())
}

// TestDamagedEnd damages the last synced record before a crash. Pebble takes the damage for a torn end, but
// after a moment without writes the next start must reject it.
func TestDamagedEnd(t *testing.T) {
	t.Parallel()
	for _, rested := range []bool{false, true} {
		config := Config{Path: t.TempDir()}
		d := reopen(t, config)
		put(t, d, "first of all", 1)
		require.NoError(t, d.Watch(time.Now()))
		put(t, d, "last of all", 2)
		require.NoError(t, d.Watch(time.Now())) // a mark is not due
		if rested {
			require.NoError(t, d.Watch(time.Now()))
		}
		d.disk.Freeze() // acts like a crash on the files
		_ = d.takeDown(context.Canceled)
		_ = d.Close()
		flip(t, config.Path, "last of all")
		d, err := Open(context.Background(), config)
		if rested {
			require.ErrorContains(t, err, "the store lacks its newest sends")
			require.ErrorContains(t, err, config.Path+".id")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "first of all", value(t, d, 1))
		require.Empty(t, value(t, d, 2), "what the mark of a store that rests is for")
		require.NoError(t, d.Close())
	}
}

// flip flips a bit of a text in one of the write-ahead logs.
func flip(t *testing.T, dir, text string) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	require.NoError(t, err)
	for _, name := range logs {
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		if at := bytes.Index(content, []byte(text)); at >= 0 {
			content[at] ^= 1
			require.NoError(t, os.WriteFile(name, content, 0o600))
			return
		}
	}
	require.Fail(t, "not in a write-ahead log", text)
}

// TestReadable checks which formats a program can read, as later programs will ask.
func TestReadable(t *testing.T) {
	t.Parallel()
	require.NoError(t, checkReadable(Marker(2), nil, 1, 2))
	require.NoError(t, checkReadable(Marker(1), nil, 1, 2))
	require.NoError(t, checkReadable(Marker(2), &upgrade{From: 1}, 1, 3))
	require.ErrorContains(t, checkReadable(Marker(3), &upgrade{From: 2}, 1, 2),
		"have format 3, which a newer version of capper wrote")
	require.ErrorContains(t, checkReadable(Marker(1), nil, 2, 3), "start a version that supports both and let it "+
		"finish the upgrade")
	require.ErrorContains(t, checkReadable(Marker(2), &upgrade{From: 1}, 2, 3),
		"the logs have format 1, but this version of capper reads the formats 2 to 3")
	require.ErrorContains(t, checkReadable(Marker(2)+" ", nil, 1, 2), "another build")
}

func TestClockGuard(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	guard := clockGuard{bound: time.Hour, known: now, opened: time.Now()}
	require.NoError(t, guard.check(capping.InstantOf(now.Add(time.Hour))))
	require.ErrorContains(t, guard.check(capping.InstantOf(now.Add(2*time.Hour))), "more than 1h ahead")
	guard.bound = math.MaxInt64
	require.NoError(t, guard.check(capping.InstantOf(now.Add(1e6*time.Hour))))
}
