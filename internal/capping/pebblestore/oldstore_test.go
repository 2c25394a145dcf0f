package pebblestore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

// The directory testdata/format-1 is a store of the last program with format 1. From 9:00 on it has the
// messages m0 to m4, one an hour. Message mK is on channel K, sent to the users 0, 1001, … 999,999 whose
// index modulo 5 is at least K. Every 7th user then has "promo" of the namespace growth on channel 1. The
// logs are in a table and in the write-ahead log.
const (
	oldUsers = 1000
	oldStep  = 1001
)

var oldTime = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// oldStore returns the directory of a copy of the old store.
func oldStore(t *testing.T) (dir string) {
	t.Helper()
	parent := t.TempDir()
	require.NoError(t, os.CopyFS(parent, os.DirFS("testdata/format-1")))
	return filepath.Join(parent, "log.db")
}

// oldConfig returns settings that open the old store at 16:00, with an upgrade in many small steps.
func oldConfig(dir string) Config {
	return Config{
		Path: dir, Clock: func() time.Time { return oldTime.Add(7 * hour) }, ClockBound: farAhead,
		SweepInterval: time.Millisecond, upgradeKeys: 10,
	}
}

// oldLogs returns the logs in the old store.
func oldLogs() map[capping.UserID]capping.Log {
	logs := make(map[capping.UserID]capping.Log)
	for i := range oldUsers {
		user, at := capping.UserID(i*oldStep), capping.InstantOf(oldTime)
		var log []byte
		for k := range i%5 + 1 {
			e := capping.Entry{At: at + capping.Instant(k)*capping.Instant(hour.Milliseconds()),
				Channel: capping.Channel(k), Token: capping.Message{ID: fmt.Sprintf("m%d", k)}.Token()}
			log = capping.Log(log).Record(nil, e, 0)
		}
		if i%7 == 0 {
			promo := capping.Message{Namespace: "growth", ID: "promo"}
			log = capping.Log(log).Record(nil, capping.Entry{At: at + 5*capping.Instant(hour.Milliseconds()),
				Channel: 1, Token: promo.Token()}, 0)
		}
		logs[user] = log
	}
	return logs
}

// model holds the expected logs of a worker's users, computed only with package capping.
type model struct {
	store *Store
	now   capping.Instant
	logs  map[capping.UserID]capping.Log
}

// call makes a random call for some of the worker's users and compares the result.
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
	token, released := capping.Message{ID: message}.Token(), make([]capping.Released, len(users))
	if err := m.store.Release(context.Background(), token, 0, users, released); err != nil {
		return err
	}
	for i, user := range users {
		log, found := m.logs[user].Release(nil, 0, token, capping.Period{})
		if found != (released[i] == capping.ReleaseDone) {
			return fmt.Errorf("release of %s of user %d: %v, in the log: %t", message, user, released[i], found)
		}
		m.logs[user] = log
	}
	return nil
}
