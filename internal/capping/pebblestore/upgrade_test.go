package pebblestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
)

// requireLogs demands these logs, and no others, of the store.
func requireLogs(t *testing.T, s *Store, want map[capping.UserID]capping.Log) {
	t.Helper()
	for user, log := range want {
		require.Equal(t, log.Entries(), logOf(t, s, user), "user %d", user)
	}
}

// versions counts the logs in the database by the version of their format.
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

// TestUpgradeWhileServing opens a store of format 1 and calls it while its logs
// are rewritten: each answer is that of the judge over the same sends, and in the
// end every log holds them, in the newest format.
func TestUpgradeWhileServing(t *testing.T) {
	t.Parallel()
	config := oldConfig(oldStore(t))
	// four seconds, so that calls come in between on a busy machine
	config.SweepInterval, config.upgradeKeys = 20*time.Millisecond, 5
	s := reopen(t, config)
	require.NotNil(t, s.db.Upgrade())
	require.Contains(t, fmt.Sprint(s.Health(t.Context()).Warnings), "logs are being rewritten from format 1 to 2")
	const workers = 4
	models := make([]*model, workers)
	for w := range models {
		models[w] = &model{store: s, now: capping.InstantOf(config.Clock()), logs: make(map[capping.UserID]capping.Log)}
	}
	for user, log := range oldLogs() {
		models[user/oldStep%workers].logs[user] = log
	}
	var during atomic.Int64
	var all sync.WaitGroup
	for w, m := range models {
		all.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(w)))
			for after := 0; after < 50; {
				upgrading := s.db.Upgrade() != nil
				if err := m.call(random, w, workers); err != nil {
					t.Error(err)
					return
				}
				if upgrading && s.db.Upgrade() != nil {
					during.Add(1)
				} else {
					after++
				}
			}
		})
	}
	all.Wait()
	require.Greater(t, during.Load(), int64(20), "calls while the upgrade was under way")
	for range 2 {
		for _, m := range models {
			requireLogs(t, s, m.logs)
		}
		require.Zero(t, versions(t, s)[bareVersion])
		require.NotContains(t, fmt.Sprint(s.Health(t.Context()).Warnings), "rewritten")
		found, err := s.Messages(t.Context(), []capping.Token{capping.Message{ID: "m3"}.Token(),
			capping.Message{Namespace: "growth", ID: "promo"}.Token()})
		require.NoError(t, err)
		require.Len(t, found, 2)
		require.NoError(t, s.Close())
		s = reopen(t, config)
		require.Nil(t, s.db.Upgrade())
	}
	require.NoError(t, s.Close())
}

// upgradeDir tells the test binary to be a process that upgrades a store, and
// that is killed when it is that far: a user id and the directory.
const upgradeDir = "CAPPER_TEST_UPGRADE_DIR"

// userAt is the first user from a key of a log on.
func userAt(key []byte) capping.UserID {
	return binary.BigEndian.Uint32(append(bytes.Clone(key[1:]), 0, 0, 0, 0))
}

// upgradeChild records sends while it upgrades, tells every answered allowed on
// stdout, and kills itself in the middle of the upgrade.
func upgradeChild(arguments string) error {
	var until capping.UserID
	var dir string
	if _, err := fmt.Sscan(arguments, &until, &dir); err != nil {
		return err
	}
	config := oldConfig(dir)
	config.SweepInterval = hour // killUpgrade takes the steps, however fast the machine is
	s, err := Open(context.Background(), config)
	if err != nil {
		return err
	}
	answered := make(chan struct{})
	go killUpgrade(s, until, config.upgradeKeys, answered)
	for n := uint64(until); ; n++ {
		users := []capping.UserID{rand.Uint32N(oldUsers) * oldStep, oldUsers * oldStep}
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

// killUpgrade upgrades the store that is called meanwhile, and kills the process at
// the user. Of two calls that end after a step the second has made it durable.
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
	os.Exit(3) // the upgrade has ended, or cannot
}

// TestUpgradeKilled kills a process in the middle of an upgrade, twice: the next
// one goes on where it was, and no send of the old store or of a call is lost.
func TestUpgradeKilled(t *testing.T) {
	t.Parallel()
	dir := oldStore(t)
	config := oldConfig(dir)
	config.SweepInterval = hour
	answered := make(map[told]bool)
	for _, until := range []int{250_000, 600_000} {
		child := exec.Command(os.Args[0], "-test.run=^$")
		child.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", upgradeDir, until, dir))
		child.Stderr = os.Stderr
		stdout, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		for _, told := range readTold(t, stdout, 0, func() error { return nil }) {
			answered[told] = true
		}
		var exit *exec.ExitError
		require.ErrorAs(t, child.Wait(), &exit)
		require.Equal(t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal(), exit.String())
		s := reopen(t, config)
		upgrade := s.db.Upgrade()
		require.NotNil(t, upgrade)
		require.Equal(t, 1, upgrade.From)
		require.GreaterOrEqual(t, int(userAt(upgrade.Next)), until, "where it was")
		require.NoError(t, s.Close())
	}
	require.NotEmpty(t, answered)
	s := reopen(t, config)
	require.Positive(t, versions(t, s)[bareVersion])
	requireAnswers(t, s, answered)
	for s.db.Upgrade() != nil {
		require.NoError(t, s.upgradeStep(t.Context(), 100))
	}
	require.Zero(t, versions(t, s)[bareVersion])
	requireAnswers(t, s, answered)
	for user, log := range oldLogs() {
		have := tokens(capping.Log(nil))
		for _, e := range logOf(t, s, user) {
			have[e.Token] = true
		}
		for _, e := range log.Entries() {
			require.True(t, have[e.Token], "user %d", user)
		}
	}
	require.NoError(t, s.Close())
}

// TestOtherFormats refuses what a newer version wrote, and does not change it.
func TestOtherFormats(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key, value []byte
		says       []string
	}{
		{database.MarkerKey, []byte(database.Marker(3)), []string{"have format 3, which a newer version of capper " +
			"wrote",
			"reads the formats 1 to 2", "start the newer version again"}},
		{database.MarkerKey, []byte("capper embedded store, format 2, something else"),
			[]string{"something else", database.Marker(2)}},
		{database.MarkerKey, []byte("another program's"), []string{"another program's", database.Marker(2)}},
		{[]byte("\x00upgrade"), []byte{1}, []string{"upgrade value"}},
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

// What was in format 1 before is refused by the programs of format 1, which
// demand their own marker, from the opening by this one on; one that is refused
// for another reason is left in format 1.
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

// TestUpgradePastDamage upgrades a store with a damaged block: its users stay
// unavailable, all others are rewritten, and the upgrade ends.
func TestUpgradePastDamage(t *testing.T) {
	t.Parallel()
	dir := oldStore(t)
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	require.Len(t, tables, 1)
	content, err := os.ReadFile(tables[0])
	require.NoError(t, err)
	content[len(content)/3] ^= 1
	require.NoError(t, os.WriteFile(tables[0], content, 0o600))

	config := oldConfig(dir)
	config.SweepInterval = hour
	s := reopen(t, config)
	for steps := 0; s.db.Upgrade() != nil; steps++ {
		require.Less(t, steps, 2*oldUsers)
		require.NoError(t, s.upgradeStep(t.Context(), 10))
	}
	require.Equal(t, 1, s.db.Damage().Blocks)
	lost := 0
	reader := s.db.NewReader()
	for user, want := range oldLogs() {
		value, err := reader.Value(user)
		if err != nil {
			lost++
			continue
		}
		log, version, err := decodeLog(value)
		require.NoError(t, err)
		require.Equal(t, logVersion, version, "user %d", user)
		require.Equal(t, want, log)
	}
	reader.End()
	require.Positive(t, lost)
	require.Less(t, lost, oldUsers/2)
	require.NoError(t, s.Close())
	s = reopen(t, config)
	require.Nil(t, s.db.Upgrade())
	require.NoError(t, s.Close())
}

// TestUpgradeDoesNotFillTheCache leaves the cache to those who are asked for.
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
