package server_test

import (
	"context"
	"sync"
	"time"

	"capper/internal/capping"
)

type memStore struct {
	mu    sync.Mutex
	clock func() time.Time
	logs  map[uint32]capping.Log
	ids   map[capping.Token]string
}

func (m *memStore) Filter(ctx context.Context, b *capping.Batch, verdicts []capping.Verdict) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := b.At
	if now == 0 {
		now = capping.InstantOf(m.clock())
	}
	if b.Record {
		m.ids[b.Token] = b.MessageID
	}
	for i, u := range b.Users {
		verdicts[i] = capping.Judge(m.logs[u], b.Token, b.Rules[b.Groups[i]], now, b.Horizon(now))
		if verdicts[i].Outcome == capping.Allowed && b.Record {
			m.logs[u] = m.logs[u].Record(nil, capping.Entry{At: now, Channel: b.Channel, Token: b.Token}, b.Horizon(now))
		}
	}
	return nil
}
func (m *memStore) Release(ctx context.Context, token capping.Token, users []uint32, released []capping.Released) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, u := range users {
		log, ok := m.logs[u].Release(nil, token)
		m.logs[u] = log
		released[i] = capping.ReleaseAbsent
		if ok {
			released[i] = capping.ReleaseDone
		}
	}
	return nil
}
func (m *memStore) Erase(ctx context.Context, user uint32) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.logs, user)
	return nil
}
func (m *memStore) Log(ctx context.Context, user uint32) (capping.Log, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.logs[user], nil
}
func (m *memStore) Messages(ctx context.Context, tokens []capping.Token) (map[capping.Token]string, error) {
	return m.ids, nil
}
func (m *memStore) Health(ctx context.Context) capping.Health {
	return capping.Health{Kind: "embedded", State: "ok"}
}
func (m *memStore) Close() error { return nil }
