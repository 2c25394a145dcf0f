package pacingtest

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
	"capper/internal/testkit"
)

// leasesEnd checks how the store begins, extends, lists and removes leases.
func leasesEnd(f *fixture) {
	kept, left := Request(), Request()
	keep := func(r pacing.Request, lasts time.Duration, call string) pacing.LeaseState {
		state, err := f.store.KeepLease(f.Context(), "", r, lasts, []byte(call))
		require.NoError(f, err)
		return state
	}
	ended := func(r pacing.Request) (call string) {
		list, err := f.store.EndedLeases(f.Context(), "", 1000)
		require.NoError(f, err)
		if i := slices.IndexFunc(list, func(l pacing.Lease) bool { return l.Request == r }); i >= 0 {
			return string(list[i].Call)
		}
		return ""
	}
	require.Equal(f, pacing.LeaseBegun, keep(kept, time.Minute, "first"))
	require.Equal(f, pacing.LeaseExtended, keep(kept, time.Millisecond, "second"), "an extension takes nothing away")
	require.Equal(f, pacing.LeaseBegun, keep(left, 5*time.Second, `{"a": "b c"}`))
	require.Equal(f, pacing.LeaseExtended, keep(left, 6*time.Second, "another"))
	testkit.Eventually(f.T, func() bool { return ended(left) != "" })
	require.Equal(f, `{"a": "b c"}`, ended(left), "the call of the beginning")
	require.Equal(f, pacing.LeaseEnded, keep(left, time.Minute, "late"))
	require.Empty(f, ended(kept))
	for _, r := range []pacing.Request{kept, left, left, Request()} {
		require.NoError(f, f.store.RemoveLease(f.Context(), "", r))
	}
	require.Empty(f, ended(left))
	require.Equal(f, pacing.LeaseExtended, keep(kept, time.Minute, ""), "a lease that has not ended stays")
	require.Equal(f, pacing.LeaseBegun, keep(left, time.Minute, ""))
}

// leasesReturn checks that a sender loses its permits when the lease ends, if the sender stops repeating its call. A
// sender that repeats its call must keep its permits.
func leasesReturn(f *fixture) {
	one := target(spaced(10 * time.Minute))
	policy := &pacing.Policy{Pacers: []pacing.Pacer{{Name: one.Pacer, Limits: one.Limits, MaxWait: 10 * time.Hour}}}
	instances := [2]*pacing.Pacers{pacing.New(f.store, policy), pacing.New(f.store, policy)}
	var returned atomic.Int64
	for _, p := range instances {
		p.OnReturn(func(back *pacing.Back) { returned.Add(int64(back.Permits)) })
	}
	call := func(permits int, lease time.Duration) *pacing.Call {
		return &pacing.Call{Pacers: []string{one.Pacer}, Permits: permits, MaxWait: 10 * time.Hour, RequestID: Name(),
			Client: "a", Lease: lease}
	}
	take := func(i int, call *pacing.Call) int {
		f.Helper()
		answer, err := instances[i].Take(f.Context(), call)
		require.NoError(f, err)
		return answer.Granted
	}
	alive, silent, dead := call(10, 15*time.Second), call(20, time.Second), call(20, time.Second)
	require.Equal(f, 10, take(0, alive))
	require.Equal(f, 20, take(1, silent))
	require.Equal(f, 20, take(0, dead))
	require.Equal(f, 11, take(0, call(30, 0)), "60 slots in ten hours, and one at once")
	testkit.Eventually(f.T, func() bool {
		require.Equal(f, 10, take(1, alive), "another instance keeps the lease, too")
		list, err := f.store.EndedLeases(f.Context(), "", 1000)
		require.NoError(f, err)
		return slices.ContainsFunc(list, func(l pacing.Lease) bool { // the lease of silent ended earlier
			return strings.Contains(string(l.Call), dead.RequestID)
		})
	})
	require.Zero(f, take(0, silent), "the late repetition gives its permits back by itself")
	require.Equal(f, int64(20), returned.Load())
	testkit.Eventually(f.T, func() bool {
		require.Equal(f, 10, take(0, alive))
		for _, p := range instances {
			_, err := p.ReturnEnded(f.Context())
			require.NoError(f, err)
		}
		return returned.Load() == 40
	})
	require.Zero(f, take(1, dead))
	require.Equal(f, 40, take(1, call(50, 0)), "others get the slots")
	require.Equal(f, 10, take(0, alive))
	require.Equal(f, int64(40), returned.Load(), "twice is once")
	leasesStay(f, instances[0])
	_, err := instances[0].Take(f.Context(), &pacing.Call{Pacers: call(1, 0).Pacers, Permits: 1, Lease: time.Second})
	require.EqualError(f, err, "lease: needs a request_id: the sender keeps the lease with calls that repeat this id")
	for _, lease := range []time.Duration{-1, time.Second - 1, time.Hour + 1} {
		_, err := instances[0].Take(f.Context(), call(1, lease))
		require.ErrorContains(f, err, "lease: must be from 1s to 1h0m0s, got ")
	}
}

// leasesStay checks a caller that repeats its call without a lease. The caller of leasesStay must keep all its permits:
// the end of the first call's lease must not return permits that the repeated call got again.
func leasesStay(f *fixture, p *pacing.Pacers) {
	one := target(spaced(10 * time.Minute))
	p.SetPolicy(&pacing.Policy{Pacers: []pacing.Pacer{{Name: one.Pacer, Limits: one.Limits, MaxWait: time.Hour}}})
	call := &pacing.Call{Pacers: []string{one.Pacer}, Permits: 3, MaxWait: time.Hour, RequestID: Name(), Client: "a",
		Lease: pacing.MinLease}
	first, err := p.Take(f.Context(), call)
	require.NoError(f, err)
	require.Equal(f, 3, first.Granted)
	call.Lease = 0
	again, err := p.Take(f.Context(), call)
	require.NoError(f, err)
	other := &pacing.Call{Pacers: call.Pacers, Permits: 1, MaxWait: time.Hour, RequestID: Name(), Client: "a",
		Lease: pacing.MinLease}
	_, err = p.Take(f.Context(), other)
	require.NoError(f, err)
	testkit.Eventually(f.T, func() bool { // the lease of a later call ends
		pacers, err := p.ReturnEnded(f.Context())
		require.NoError(f, err)
		return len(pacers) > 0
	})
	kept, err := p.Take(f.Context(), call)
	require.NoError(f, err)
	require.Equal(f, again.Granted, kept.Granted)
}

// leasesRace checks a race: a sender repeats a call whose lease has ended, while another instance returns the permits
// of the lease. The store grants the permits to the repeated call again. The other instance then returns them, before
// the repeated call extends the lease.
func leasesRace(f *fixture) {
	one := target(spaced(time.Minute))
	policy := &pacing.Policy{Pacers: []pacing.Pacer{{Name: one.Pacer, Limits: one.Limits, MaxWait: time.Hour}}}
	call := &pacing.Call{Pacers: []string{one.Pacer}, Permits: 20, MaxWait: time.Hour, RequestID: Name(),
		Lease: pacing.MinLease}
	first, err := pacing.New(f.store, policy).Take(f.Context(), call)
	require.NoError(f, err)
	require.Equal(f, 20, first.Granted)
	returned := 0
	other := pacing.New(f.store, policy)
	other.OnReturn(func(back *pacing.Back) { returned += back.Permits })
	late := pacing.New(&beforeKeep{f.store, func() {
		testkit.Eventually(f.T, func() bool {
			pacers, err := other.ReturnEnded(f.Context())
			require.NoError(f, err)
			require.Equal(f, returned > 0, len(pacers) > 0)
			return returned > 0
		})
	}}, policy)
	again, err := late.Take(f.Context(), call)
	require.NoError(f, err)
	require.Equal(f, 20-returned, again.Granted)
	require.LessOrEqual(f, again.Granted, 1, "at most the slot that has come")
}

// beforeKeep is a store that calls the function in its field "do" before each KeepLease.
type beforeKeep struct {
	pacing.Store
	do func()
}

// KeepLease implements pacing.Leases.
func (b *beforeKeep) KeepLease(ctx context.Context, group string, r pacing.Request, lasts time.Duration,
	call []byte) (pacing.LeaseState, error) {
	b.do()
	return b.Store.KeepLease(ctx, group, r, lasts, call)
}
