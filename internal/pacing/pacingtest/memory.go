package pacingtest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"capper/internal/pacing"
)

// Memory is a minimal pacing.Store for tests that keeps logs and requests in maps. Memory never forgets a request.
type Memory struct {
	mu       sync.Mutex
	now      func() time.Time
	logs     map[string]*pacing.Log
	requests map[pacing.Request]*pacing.Remembered
	taken    map[pacing.Request][]*pacing.Log // by request: the logs with the slots of the request
	leases   map[pacing.Request]*lease
}

// The type "lease" is a lease that a Memory keeps.
type lease struct {
	group string
	ends  time.Time
	call  []byte
}

var _ pacing.Store = (*Memory)(nil)

// NewMemory returns an empty store that reads the time from the function in the argument "now".
func NewMemory(now func() time.Time) *Memory {
	return &Memory{now: now, logs: map[string]*pacing.Log{}, requests: map[pacing.Request]*pacing.Remembered{},
		taken: map[pacing.Request][]*pacing.Log{}, leases: map[pacing.Request]*lease{}}
}

// TakePermits implements pacing.Store.
func (m *Memory) TakePermits(ctx context.Context, ask *pacing.Ask) (pacing.Grant, error) {
	if err := ctx.Err(); err != nil {
		return pacing.Grant{}, err
	}
	if err := ask.Check(); err != nil {
		return pacing.Grant{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now, logs := pacing.TimeOf(m.now()), m.of(ask.Targets)
	if held := m.requests[ask.Request]; held != nil {
		if held.Fingerprint != ask.Fingerprint() {
			return pacing.Grant{}, &pacing.ReuseError{}
		}
		look := *ask
		look.Permits = 0
		placed := pacing.Place(now, &look, logs)
		placed.Log, placed.More = held.Log, held.More
		return grantOf(now, ask, &placed, logs, true), nil
	}
	for i, log := range logs {
		if len(log.Runs)+min(ask.Permits, pacing.MostSteps) > pacing.MostRuns {
			log.Merge(now, ask.Targets[i].Limits)
		}
	}
	placed := pacing.Place(now, ask, logs)
	if ask.Remembers(int(placed.Total)) {
		m.requests[ask.Request] = &pacing.Remembered{Fingerprint: ask.Fingerprint(), More: placed.More, Log: placed.Log}
		m.taken[ask.Request] = logs
	}
	return grantOf(now, ask, &placed, logs, false), nil
}

// ReturnPermits implements pacing.Store.
func (m *Memory) ReturnPermits(ctx context.Context, ask *pacing.Ask, used int) (pacing.Returned, error) {
	if err := errors.Join(ctx.Err(), ask.Check()); err != nil {
		return pacing.Returned{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now, held := pacing.TimeOf(m.now()), m.requests[ask.Request]
	if held == nil {
		return pacing.Returned{At: now, Targets: make([]int, len(ask.Targets))}, nil
	}
	if held.Fingerprint != ask.Fingerprint() {
		return pacing.Returned{}, &pacing.ReuseError{}
	}
	logs := m.of(ask.Targets)
	for i, log := range logs {
		if !slices.Contains(m.taken[ask.Request], log) { // ForgetPacer removed the old log after the request
			logs[i] = nil
		}
	}
	return held.GiveBack(now, ask, used, logs), nil
}

// HasRequest implements pacing.Store.
func (m *Memory) HasRequest(_ context.Context, _ string, r pacing.Request) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests[r] != nil, nil
}

// Requests returns the number of remembered requests.
func (m *Memory) Requests() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.requests)
}

// The method "of" returns the logs of the given targets, and creates an empty log for each target without a log.
func (m *Memory) of(targets []pacing.Target) (logs []*pacing.Log) {
	for i := range targets {
		name := nameOf(&targets[i])
		if m.logs[name] == nil {
			m.logs[name] = &pacing.Log{}
		}
		logs = append(logs, m.logs[name])
	}
	return logs
}

func grantOf(now pacing.Time, ask *pacing.Ask, placed *pacing.Placed, logs []*pacing.Log, replayed bool) pacing.Grant {
	grant := pacing.Grant{
		At: now, Granted: int(placed.Total), Runs: slices.Clone(placed.WaitRuns(now)), Replayed: replayed,
		More: placed.More,
		Next: placed.Next.Sub(now), Target: placed.Target, Limit: placed.Limit,
	}
	for i := range ask.Targets {
		grant.States = append(grant.States, pacing.StateOf(now, &ask.Targets[i], logs[i]))
	}
	return grant
}

// ForgetPacer implements pacing.Store.
func (m *Memory) ForgetPacer(ctx context.Context, pacer, _ string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	forgetPacer(m.logs, pacer)
	return nil
}

// KeepLease implements pacing.Leases.
func (m *Memory) KeepLease(ctx context.Context, group string, r pacing.Request, lasts time.Duration, call []byte) (
	pacing.LeaseState, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	switch l := m.leases[r]; {
	case l == nil:
		m.leases[r] = &lease{group, now.Add(lasts), slices.Clone(call)}
		return pacing.LeaseBegun, nil
	case !l.ends.After(now):
		return pacing.LeaseEnded, nil
	case l.ends.Before(now.Add(lasts)):
		l.ends = now.Add(lasts)
	}
	return pacing.LeaseExtended, nil
}

// EndedLeases implements pacing.Leases.
func (m *Memory) EndedLeases(ctx context.Context, group string, most int) (ended []pacing.Lease, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for r, l := range m.leases {
		if len(ended) < most && l.group == group && !l.ends.After(now) {
			ended = append(ended, pacing.Lease{Request: r, Ended: now.Sub(l.ends), Call: l.call})
		}
	}
	return ended, nil
}

// RemoveLease implements pacing.Leases.
func (m *Memory) RemoveLease(ctx context.Context, _ string, r pacing.Request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.leases[r]; l != nil && !l.ends.After(m.now()) {
		delete(m.leases, r)
	}
	return nil
}
