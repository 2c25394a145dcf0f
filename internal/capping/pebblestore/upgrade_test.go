package pebblestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
)

// versions returns the number of logs in the database by format version.
func versions(t *testing.T, s *Store) map[int]int {
	t.Helper()
	count := make(map[int]int)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{database.KeyLog},
		UpperBound: []byte{database.KeyLog + 1}})
	require.NoError(t, err)
	for ok := it.First(); ok; ok = it.Next() {
		_, version, err := decodeLog(it.Value())
		require.NoError(t, err)
		count[version]++
	}
	require.NoError(t, it.Close())
	return count
}

// upgradeDir is the environment variable that makes the test binary upgrade a store and die at a given
// point. Its value is a user id and the directory.
const upgradeDir = "CAPPER_TEST_UPGRADE_DIR"

// userAt returns the first user at or after the key of a log.
func userAt(key []byte) capping.UserID {
	return capping.UserID(binary.BigEndian.Uint32(append(bytes.Clone(key[1:]), 0, 0, 0, 0)))
}

// upgradeChild records sends during an upgrade, writes every answered allowed send to stdout, and kills
// itself in the middle of the upgrade.
func upgradeChild(arguments string) error {
	var until capping.UserID
	var dir string
	if _, err := fmt.Sscan(arguments, &until, &dir); err != nil {
		return err
	}
	config := oldConfig(dir)
	config.SweepInterval = hour // killUpgrade runs the steps, at any machine speed
	s, err := Open(context.Background(), config)
	if err != nil {
		return err
	}
	answered := make(chan struct{})
	go killUpgrade(s, until, config.upgradeKeys, answered)
	for n := uint64(until); ; n++ {
		users := []capping.UserID{capping.UserID(rand.Uint32N(oldUsers) * oldStep), oldUsers * oldStep}
		verdicts := make([]capping.Verdict, len(users))
		if err := s.Filter(context.Background(), benchBatch(crashMessage(n), users), verdicts); err != nil {
			return err
		}
		for _, user := range users {
			if _, err := os.Stdout.Write(encodeTold(told{n, user})); err != nil {
				return err
			}
		}
		select {
		case answered <- struct{}{}:
		default:
		}
	}
}

// killUpgrade upgrades the store during calls and kills the process at the given user. Of two calls that end
// after a step, the second makes the step durable.
func killUpgrade(s *Store, until capping.UserID, keys int, answered <-chan struct{}) {
	for upgrade := s.db.Upgrade(); upgrade != nil; upgrade = s.db.Upgrade() {
		<-answered
		<-answered
		if userAt(upgrade.Next) >= until {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		if err := s.upgradeStep(context.Background(), keys); err != nil {
			break
		}
	}
	os.Exit(3) // the upgrade has ended or cannot continue
}

// TestOtherFormats checks that a store of a newer version is rejected and not changed.
func TestOtherFormats(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key, value []byte
		says       []string
	}{
		{database.MarkerKey, []byte(database.Marker(4)), []string{"have format 4, which a newer version of capper " +
			"wrote",
			"reads the formats 1 to 3", "start the newer version again"}},
		{database.MarkerKey, []byte("capper embedded store, format 2, something else"),
			[]string{"something else", database.Marker(2)}},
		{database.MarkerKey, []byte("another program's"), []string{"another program's", database.Marker(2)}},
		{[]byte("\x00upgrade"), []byte{1}, []string{"upgrade record"}},
	} {
		dir := t.TempDir()
		s := reopen(t, Config{Path: dir})
		require.NoError(t, s.db.Set(c.key, c.value, pebble.Sync))
		require.NoError(t, s.Close())
		for range 2 {
			refused(t, Config{Path: dir}, c.says...)
		}
	}
}

// TestOldProgramsRefuseTheNewFormat checks that programs for format 1 reject a store after this program has
// opened it. A store that this program rejects must stay in format 1.
func TestOldProgramsRefuseTheNewFormat(t *testing.T) {
	t.Parallel()
	const old = "capper embedded store, format 1, bucket size 1, entries of 12 bytes, epoch 1704067200000"
	dir := oldStore(t)
	marker := func() string {
		db, err := pebble.Open(dir, &pebble.Options{Logger: silent{}})
		require.NoError(t, err)
		value, closer, err := db.Get(database.MarkerKey)
		require.NoError(t, err)
		marker := string(value)
		require.NoError(t, errors.Join(closer.Close(), db.Close()))
		return marker
	}
	identity, err := os.ReadFile(dir + ".id")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(dir+".id", bytes.Replace(identity, []byte(`"mark":2`), []byte(`"mark":9`), 1),
		0o600))
	refused(t, oldConfig(dir), "the store lacks its newest sends")
	require.Equal(t, old, marker())
	require.NoError(t, os.WriteFile(dir+".id", identity, 0o600))
	s := reopen(t, oldConfig(dir))
	require.NoError(t, s.Close())
	require.NotEqual(t, old, marker())
	require.Contains(t, marker(), "format 2,")
}

// TestUpgradeDoesNotFillTheCache checks that an upgrade leaves the cache to the logs of calls.
func TestUpgradeDoesNotFillTheCache(t *testing.T) {
	t.Parallel()
	config := oldConfig(oldStore(t))
	config.SweepInterval = hour
	s := reopen(t, config)
	_, err := filterAll(s, "new", 0)
	require.NoError(t, err)
	for s.db.Upgrade() != nil {
		require.NoError(t, s.upgradeStep(t.Context(), 100))
	}
	_, cached := s.cacheOf(0).Log(0)
	require.True(t, cached)
	_, cached = s.cacheOf(oldStep).Log(oldStep)
	require.False(t, cached)
	require.Equal(t, map[int]int{logVersion: oldUsers}, versions(t, s))
	require.NoError(t, s.Close())
}
