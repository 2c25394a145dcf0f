package ops_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/cli/ops"
)

// logs is a store that is a map: a source and a target.
type logs map[capping.UserID]capping.Log

func (l logs) Logs(_ context.Context, from capping.UserID, most int) (users []capping.UserID, found []capping.Log,
	err error) {
	for user := range l {
		if user >= from {
			users = append(users, user)
		}
	}
	slices.Sort(users)
	users = users[:min(len(users), most)]
	for _, user := range users {
		found = append(found, l[user])
	}
	return users, found, nil
}

func (l logs) Messages(context.Context, []capping.Token) (map[capping.Token]capping.Message, error) {
	return nil, nil
}

// memory is a target in memory.
type memory struct {
	logs
	locked chan struct{}
	fails  func() error
}

func newMemory() *memory {
	return &memory{logs: logs{}, locked: make(chan struct{}, 1), fails: func() error { return nil }}
}

func (m *memory) Merge(_ context.Context, merge *capping.Merge, merged []capping.Merged) error {
	m.locked <- struct{}{}
	defer func() { <-m.locked }()
	for i, user := range merge.Users {
		if err := m.fails(); err != nil {
			return err
		}
		log, added := m.logs[user].Union(nil, merge.Logs[i], 0)
		m.logs[user], merged[i] = log, capping.MergedOf(added)
	}
	return nil
}

func (m *memory) Log(_ context.Context, user capping.UserID) (capping.Log, error) {
	m.locked <- struct{}{}
	defer func() { <-m.locked }()
	return m.logs[user], m.fails()
}

func (m *memory) Erase(_ context.Context, user capping.UserID) error {
	m.locked <- struct{}{}
	defer func() { <-m.locked }()
	delete(m.logs, user)
	return m.fails()
}

// Whatever happens between passes, and wherever one of them ends early, the target has in the end what the source has.
func TestPassesBringOverWhatThereIs(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 1))
		source, to := logs{}, newMemory()
		var last ops.Source
		var unfinished []ops.Source
		for range 4 {
			change(random, source, now)
			left := random.IntN(20_000)
			to.fails = func() error {
				if left--; left == 0 {
					return fmt.Errorf("cut")
				}
				return nil
			}
			at := copyOf(source)
			pass := ops.Pass{Now: at, Last: last, Unfinished: unfinished, Target: to, Retention: 168 * time.Hour,
				Clock: func() time.Time { return now }}
			if _, err := pass.Run(t.Context()); err != nil {
				unfinished = append(unfinished, at)
				continue
			}
			last, unfinished = at, nil
			requireSame(t, source, to.logs)
		}
		to.fails = func() error { return nil }
		pass := ops.Pass{Now: source, Last: last, Unfinished: unfinished, Target: to, Retention: 168 * time.Hour,
			Clock: func() time.Time { return now }}
		result, err := pass.Run(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, len(source), result.Users)
		requireSame(t, source, to.logs)
	}
}

// What is written beside a pass is noticed: somebody decides there.
func TestAnotherWriterIsNoticed(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	source, to := logs{}, newMemory()
	change(rand.New(rand.NewPCG(1, 1)), source, now)
	to.fails = func() error {
		for user := range source {
			other := capping.Entry{At: capping.InstantOf(now), Channel: 9,
				Token: capping.Message{ID: "another"}.Token()}
			to.logs[user] = to.logs[user].Record(nil, other, 0)
			return nil
		}
		return nil
	}
	pass := ops.Pass{Now: source, Target: to, Retention: 168 * time.Hour, Clock: func() time.Time { return now }}
	_, err := pass.Run(t.Context())
	require.ErrorIs(t, err, ops.ErrDiffers)
}

// change sends, gives back and erases.
func change(random *rand.Rand, l logs, now time.Time) {
	for range 3000 {
		user := capping.UserID(random.IntN(6000))
		switch random.IntN(8) {
		case 0:
			delete(l, user)
		case 1:
			if log := l[user]; log.Len() > 0 {
				token := log.Entry(random.IntN(log.Len())).Token
				if kept, _ := log.Release(nil, 0, token, capping.Period{}); len(kept) > 0 {
					l[user] = kept
				} else {
					delete(l, user)
				}
			}
		default:
			at := now.Add(-time.Duration(random.IntN(100)) * time.Hour)
			sent := capping.Entry{At: capping.InstantOf(at), Channel: 1,
				Token: capping.Message{ID: fmt.Sprint(random.IntN(1 << 30))}.Token()}
			l[user], _ = l[user].Union(nil, bytesOf(sent), 0)
		}
	}
}

func bytesOf(e capping.Entry) capping.Log { return capping.Log(nil).Record(nil, e, 0) }

func copyOf(l logs) logs {
	copied := logs{}
	for user, log := range l {
		copied[user] = bytes.Clone(log)
	}
	return copied
}

func requireSame(t *testing.T, want, got logs) {
	t.Helper()
	for user, log := range want {
		if !bytes.Equal(log, got[user]) {
			require.Equal(t, log.Entries(), got[user].Entries(), "user %d", user)
		}
	}
	for user := range got {
		if _, known := want[user]; !known {
			require.Zero(t, got[user].Len(), "user %d", user)
		}
	}
}
