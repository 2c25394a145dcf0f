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

// testdata/format-1 is a store that the last program of format 1 wrote: from
// 9:00 on, an hour apart, the messages m0 to m4, mK on channel K to those of the
// users 0, 1001, … 999,999 whose index modulo 5 is at least K, and then "promo"
// of the namespace growth on channel 1 to every 7th. Its logs lie in a table and
// in the write-ahead log.
const (
	oldUsers = 1000
	oldStep  = 1001
)

var oldTime = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// oldStore is a copy of that store.
func oldStore(t *testing.T) (dir string) {
	t.Helper()
	parent := t.TempDir()
	require.NoError(t, os.CopyFS(parent, os.DirFS("testdata/format-1")))
	return filepath.Join(parent, "log.db")
}

// oldConfig opens it at 16:00, with an upgrade of many small steps.
func oldConfig(dir string) Config {
	return Config{
		Path: dir, Clock: func() time.Time { return oldTime.Add(7 * hour) }, ClockBound: farAhead,
		SweepInterval: time.Millisecond, upgradeKeys: 10,
	}
}

// oldLogs is what the store holds.
func oldLogs() map[capping.UserID]capping.Log {
	logs := make(map[capping.UserID]capping.Log)
	for i := range oldUsers {
		user, at := capping.UserID(i*oldStep), capping.InstantOf(oldTime)
		var log []byte
		for k := range i%5 + 1 {
			e := capping.Entry{At: at + capping.Instant(k)*capping.Instant(hour.Milliseconds()), Channel: capping.Channel(k), Token: capping.TokenOf(fmt.Sprintf("m%d", k))}
			log = capping.Log(log).Record(nil, e, 0)
		}
		if i%7 == 0 {
			promo := capping.Message{Namespace: "growth", ID: "promo"}
			log = capping.Log(log).Record(nil, capping.Entry{At: at + 5*capping.Instant(hour.Milliseconds()), Channel: 1, Token: promo.Token()}, 0)
		}
		logs[user] = log
	}
	return logs
}

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
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{database.KeyLog}, UpperBound: []byte{database.KeyLog + 1}})
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
		found, err := s.Messages(t.Context(), []capping.Token{capping.TokenOf("m3"), capping.Message{Namespace: "growth", ID: "promo"}.Token()})
		require.NoError(t, err)
		require.Len(t, found, 2)
		require.NoError(t, s.Close())
		s = reopen(t, config)
		require.Nil(t, s.db.Upgrade())
	}
	require.NoError(t, s.Close())
}

// model is the logs of a worker's users as they must be, kept by the rules of
// package capping alone.
type model struct {
	store *Store
	now   capping.Instant
	logs  map[capping.UserID]capping.Log
}

// call makes a random call for some of the worker's users, and compares.
func (m *model) call(random *rand.Rand, worker, workers int) error {
	users := make([]capping.UserID, 1+random.IntN(40))
	for i := range users {
		users[i] = capping.UserID((random.IntN((oldUsers+100)/workers)*workers + worker) * oldStep)
	}
	users, _ = capping.Distinct(users)
	message := fmt.Sprintf("m%d", random.IntN(8))
	switch random.IntN(10) {
	case 0:
		m.logs[users[0]] = nil
		return m.store.Erase(context.Background(), users[0])
	case 1, 2:
		return m.release(message, users)
	}
	return m.filter(message, users)
}

func (m *model) filter(message string, users []capping.UserID) error {
	b := benchBatch(message, users)
	limit := capping.Limit{Max: 4, Window: 24 * time.Hour}
	b.Rules = [][]capping.Rule{{limit.Rule(m.now, 0)}}
	verdicts := make([]capping.Verdict, len(users))
	if err := m.store.Filter(context.Background(), b, verdicts); err != nil {
		return err
	}
	for i, user := range users {
		log, horizon := m.logs[user], b.Horizon(m.now)
		want := capping.Judge(log, b.Channel, b.Token, b.Rules[0], m.now, horizon)
		if verdicts[i] != want {
			return fmt.Errorf("message %s to user %d: %v, must be %v", message, user, verdicts[i], want)
		}
		if want.Outcome == capping.Allowed {
			m.logs[user] = log.Record(nil, capping.Entry{At: m.now, Channel: b.Channel, Token: b.Token}, horizon)
		}
	}
	return nil
}

func (m *model) release(message string, users []capping.UserID) error {
	token, released := capping.TokenOf(message), make([]capping.Released, len(users))
	if err := m.store.Release(context.Background(), token, 0, users, released); err != nil {
		return err
	}
	for i, user := range users {
		log, found := m.logs[user].Release(nil, 0, token)
		if found != (released[i] == capping.ReleaseDone) {
			return fmt.Errorf("release of %s of user %d: %v, in the log: %t", message, user, released[i], found)
		}
		m.logs[user] = log
	}
	return nil
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
	s, err := Open(context.Background(), oldConfig(dir))
	if err != nil {
		return err
	}
	go func() {
		for {
			upgrade := s.db.Upgrade()
			if upgrade == nil {
				os.Exit(3) // the upgrade has ended
			}
			if userAt(upgrade.Next) >= until {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		}
	}()
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
	}
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
		require.Greater(t, int(userAt(upgrade.Next)), until/2, "where it was, but for what the disk had not got")
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
		{database.MarkerKey, []byte(database.Marker(3)), []string{"in format 3, which a newer version of capper wrote", "reads the formats 1 to 2", "start the newer version again"}},
		{database.MarkerKey, []byte("capper embedded store, format 2, something else"), []string{"something else", database.Marker(2)}},
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
	require.NoError(t, os.WriteFile(dir+".id", bytes.Replace(identity, []byte(`"mark":2`), []byte(`"mark":9`), 1), 0o600))
	refused(t, oldConfig(dir), "it lacks its newest sends")
	require.Equal(t, old, marker())
	require.NoError(t, os.WriteFile(dir+".id", identity, 0o600))
	s := reopen(t, oldConfig(dir))
	require.NoError(t, s.Close())
	require.NotEqual(t, old, marker())
	require.Contains(t, marker(), "format 2,")
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
