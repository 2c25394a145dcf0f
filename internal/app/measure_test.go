package app_test

import (
	"context"
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"capper/internal/app"
	"capper/internal/capping"
)

// halfStore decides the first user of a call and fails for the others.
type halfStore struct{ capping.Store }

// plainStore is a store without optional methods.
type plainStore struct{ capping.Store }

var errHalf = errors.New("half")

func (halfStore) Filter(_ context.Context, b *capping.Batch, verdicts []capping.Verdict) error {
	if len(b.Users) > 0 {
		verdicts[0].Outcome = capping.Denied
	}
	return errHalf
}

func (halfStore) Release(_ context.Context, _ capping.Token, _ capping.Channel, users []capping.UserID,
	released []capping.Released) error {
	if len(users) > 0 {
		released[0] = capping.ReleaseAbsent
	}
	return errHalf
}

func (halfStore) Health(context.Context) capping.Health { return capping.Health{State: "degraded"} }

func (halfStore) Erase(context.Context, capping.UserID) error              { return nil }
func (halfStore) Log(context.Context, capping.UserID) (capping.Log, error) { return nil, errHalf }

func (halfStore) Messages(_ context.Context, tokens []capping.Token) (map[capping.Token]capping.Message, error) {
	found := map[capping.Token]capping.Message{}
	for _, token := range tokens {
		found[token] = capping.Message{ID: "m"}
	}
	return found, errHalf
}

func (halfStore) Take(context.Context, string, capping.Rate, int) (capping.RateState, error) {
	return capping.RateState{Remaining: 7}, nil
}

func TestCallsAreCountedByResult(t *testing.T) {
	t.Parallel()
	registry, ctx := prometheus.NewRegistry(), t.Context()
	store, err := app.Store(halfStore{}, "half", registry)
	require.NoError(t, err)
	_, err = app.Store(halfStore{}, "half", registry)
	require.Error(t, err, "one store to a registry")

	require.ErrorIs(t, store.Filter(ctx, &capping.Batch{Users: make([]capping.UserID, 2)}, make([]capping.Verdict, 2)),
		errHalf)
	require.ErrorIs(t, store.Filter(ctx, &capping.Batch{}, nil), errHalf)
	require.ErrorIs(t, store.Release(ctx, capping.Token{}, 0, make([]capping.UserID, 2), make([]capping.Released, 2)),
		errHalf)
	require.NoError(t, store.Erase(ctx, 1))
	_, err = store.Log(ctx, 1)
	require.ErrorIs(t, err, errHalf)
	_, err = store.Messages(ctx, make([]capping.Token, 1))
	require.ErrorIs(t, err, errHalf)

	families, err := registry.Gather()
	require.NoError(t, err)
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "capper_store_calls_total" {
				require.Equal(t, "half", m.GetLabel()[2].GetValue())
				got[m.GetLabel()[0].GetValue()+" "+m.GetLabel()[1].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	require.Equal(t, map[string]float64{
		"filter ok": 0, "filter partial": 1, "filter error": 1, "release ok": 0, "release partial": 1,
		"release error": 0,
		"erase ok":      1, "erase partial": 0, "erase error": 0, "log ok": 0, "log partial": 0, "log error": 1,
		"messages ok": 0, "messages partial": 1, "messages error": 0,
	}, got)
	require.Equal(t, "capper_store_call_seconds", families[0].GetName())
	require.Len(t, families[0].GetMetric(), 5)
	states := map[string]float64{}
	for _, m := range families[2].GetMetric() {
		states[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
	}
	require.Equal(t, map[string]float64{"ok": 0, "degraded": 1, "down": 0}, states)
}

// TestAsFindsWhatAStoreCanDo checks that optional methods of a store are found through the measuring wrapper.
func TestAsFindsWhatAStoreCanDo(t *testing.T) {
	t.Parallel()
	store, err := app.Store(halfStore{plainStore{}}, "half", prometheus.NewRegistry())
	require.NoError(t, err)
	limiter, ok := capping.As[capping.RateLimiter](store)
	require.True(t, ok)
	state, err := limiter.Take(t.Context(), "crm", capping.Rate{}, 1)
	require.NoError(t, err)
	require.Equal(t, 7, state.Remaining)
	unmeasured, err := app.Store(plainStore{}, "plain", nil)
	require.NoError(t, err)
	_, ok = capping.As[capping.RateLimiter](unmeasured)
	require.False(t, ok)
	_, ok = capping.As[capping.RateLimiter](nil)
	require.False(t, ok)
}
