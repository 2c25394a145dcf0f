//go:build storms

package pebblestore

import (
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

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

// requireLogs checks that the store has exactly these logs.
func requireLogs(t *testing.T, s *Store, want map[capping.UserID]capping.Log) {
	t.Helper()
	for user, log := range want {
		require.Equal(t, log.Entries(), logOf(t, s, user), "user %d", user)
	}
}

// TestUpgradeWhileServing opens a store of format 1 and calls it while its logs are rewritten. Each reply
// must equal that of the model. At the end every log must be right and in the newest format.
func TestUpgradeWhileServing(t *testing.T) {
	t.Parallel()
	config := oldConfig(oldStore(t))
	// The upgrade takes four seconds, so that calls happen during it on a busy machine.
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

// TestUpgradeKilled kills a process twice during an upgrade. The next process must continue the upgrade, and
// no send may be lost.
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

// TestUpgradePastDamage upgrades a store with a damaged block. Its users must stay unavailable, all other
// logs must be rewritten, and the upgrade must end.
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
