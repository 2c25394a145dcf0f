package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/pacing"
	"capper/internal/server"
	"capper/internal/server/gate"
	"capper/internal/testkit"
)

// bound returns a service with pacers and keys on a store that may be shared, with the given limit on permit records.
func bound(
	t *testing.T, store capping.Store, clock *testkit.Clock, bounds pacing.RecordBounds,
) (*service, *pacing.Records) {
	t.Helper()
	kept, ok := capping.As[pacing.RecordStore](store)
	require.True(t, ok)
	records := pacing.NewRecords(kept, bounds, clock.Now, nil)
	require.NoError(t, records.Sync(t.Context()))
	s := newServiceOver(t, store, clock, withPacers(t, store), func(cfg *server.Config) {
		cfg.Access = gate.Rules{Keys: testKeys()}
		cfg.Pacers.Bound(records)
	})
	s.key = "f1.secret-of-the-engine"
	return s, records
}

// recordStores returns functions that open each store, by name. For a store of several instances, each call opens
// another instance.
func recordStores(t *testing.T, clock *testkit.Clock) map[string]func() capping.Store {
	namespace := testkit.Namespace()
	embedded := sync.OnceValue(func() capping.Store { return openStore(t, clock.Now) })
	return map[string]func() capping.Store{
		"embedded": embedded,
		"redis":    func() capping.Store { return openRedis(t, clock.Now, namespace) },
	}
}

// fresh returns a call that leaves a request record and a log for a day.
func fresh(n int) fields {
	return fields{
		"pacers": []string{"campaign"}, "permits": 1, "max_wait": "24h",
		"message_id": fmt.Sprintf("message-%d", n), "request_id": fmt.Sprintf("request-%d", n),
	}
}

// TestKeysAreBoundedByClient checks that a client cannot fill the store with logs of keys.
func TestKeysAreBoundedByClient(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	for name, open := range recordStores(t, clock) {
		t.Run(name, func(t *testing.T) {
			s, records := bound(t, open(), clock, pacing.RecordBounds{Client: 5, All: 50})
			ask := func(n int) fields {
				return fields{"pacers": []string{"sender"}, "permits": 1, "key": fmt.Sprint("+65", n)}
			}
			for n := range 5 {
				require.Equal(t, 1, s.permits(ask(n)).Granted)
			}
			requireFull(t, s.post("/v1/permits", ask(5)), "this client has 5 logs of messages and keys")
			known := ask(3)
			known["max_wait"] = "2s"
			require.Equal(t, 1, s.permits(known).Granted, "a known key leaves nothing new")
			clock.Advance(48 * time.Hour)
			require.NoError(t, records.Sync(t.Context()))
			require.Equal(t, 1, s.permits(ask(5)).Granted, "logs expire by themselves")
		})
	}
}

func requireFull(t *testing.T, r reply, message string) {
	t.Helper()
	requireRefused(t, r, http.StatusTooManyRequests, "too_many_records", badBody{message: message})
	require.NotEmpty(t, r.header.Get("Retry-After"))
}

// TestRecordsAreBoundedByClient checks that all instances refuse a client at its limit of records, also after
// restarts, until records expire. Repeated calls, running campaigns, calls without records, and other clients
// continue.
func TestRecordsAreBoundedByClient(t *testing.T) {
	t.Parallel()
	const most = 40
	bounds := pacing.RecordBounds{Client: most, All: 10 * most}
	clock := testkit.NewClock()
	for name, open := range recordStores(t, clock) {
		t.Run(name, func(t *testing.T) {
			first, a := bound(t, open(), clock, bounds)
			second, b := bound(t, open(), clock, bounds)
			for n := range most / 2 {
				first.permits(fresh(n))
				first.permits(fresh(n)) // a repeated call leaves no further records
			}
			require.NoError(t, a.Sync(t.Context()))
			require.NoError(t, b.Sync(t.Context()))
			for n := most / 2; n < most; n++ {
				second.permits(fresh(n))
			}
			requireFull(t, second.post("/v1/permits", fresh(most)), "this client has 40 ")
			require.NoError(t, b.Sync(t.Context()))
			require.NoError(t, a.Sync(t.Context()))
			requireFull(t, first.post("/v1/permits", fresh(most)), "this client has 40 ")
			require.Equal(t, most, a.Count("engine", pacing.RequestRecord))
			require.Equal(t, most, a.CountAll(pacing.LogRecord))
			require.InDelta(t, 1, a.Used(), 0)

			restarted, c := bound(t, open(), clock, bounds)
			for n := range most {
				require.True(t, restarted.permits(fresh(n)).Replayed, n)
			}
			running := fresh(3)
			delete(running, "request_id")
			require.Equal(t, 1, restarted.permits(running).Granted, "a campaign that has begun")
			requireFull(t, restarted.post("/v1/permits", fresh(most)), "this client has 40 ")
			begun := fresh(most)
			delete(begun, "request_id")
			requireFull(t, restarted.post("/v1/permits", begun), "this client has 40 logs of messages")
			shared := fields{"pacers": []string{"carrier"}, "permits": 1, "max_wait": "24h"}
			require.Equal(t, 1, restarted.permits(shared).Granted, "leaves nothing behind")
			shared["request_id"] = "other"
			requireFull(t, restarted.post("/v1/permits", shared), "this client has 40 remembered requests")
			require.Equal(t, http.StatusOK, restarted.post("/v1/filter", `{"message_id":"m","user_ids":[1]}`).status)
			restarted.key = "x1.all"
			require.Equal(t, 1, restarted.permits(fresh(most)).Granted, "another client")
			shown := string(restarted.get("/metrics").body)
			for _, line := range []string{
				`capper_permit_records{client="engine",kind="request"} 40`,
				`capper_permit_records{client="root",kind="log"} 1`,
				`capper_permit_records_in_all{kind="log"} 41`, `capper_permit_records_used_ratio 1`,
				`capper_permit_records_refused_total{client="engine"} 3`,
				`capper_permit_records_refused_total{client="root"} 0`,
			} {
				require.Contains(t, shown, line+"\n")
			}
			require.NoError(t, c.Sync(t.Context()))
			clock.Advance(27 * time.Hour)
			defer clock.Advance(-27 * time.Hour)
			for _, records := range []*pacing.Records{a, b, c} {
				require.NoError(t, records.Sync(t.Context()))
				require.Zero(t, records.CountAll(pacing.RequestRecord))
				require.Zero(t, records.CountAll(pacing.LogRecord))
			}
			restarted.key = "f1.secret-of-the-engine"
			require.Equal(t, 1, restarted.permits(fresh(most+1)).Granted, "there is room again")
		})
	}
}

// TestRecordsAreBoundedInAll checks that the total limit refuses clients far below their own limit.
func TestRecordsAreBoundedInAll(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	s, _ := bound(t, openStore(t, clock.Now), clock, pacing.RecordBounds{Client: 5, All: 8})
	for n := range 5 {
		s.permits(fresh(n))
	}
	s.key = "x1.all"
	for n := range 3 {
		s.permits(fresh(10 + n))
	}
	requireFull(t, s.post("/v1/permits", fresh(20)), "all clients together have 8 ")
	require.True(t, s.permits(fresh(12)).Replayed)
}

// TestRecordsOfCallsAtOneTime checks that concurrent calls share the remaining records.
func TestRecordsOfCallsAtOneTime(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	s, records := bound(t, openStore(t, clock.Now), clock, pacing.RecordBounds{Client: 10, All: 100})
	var calls sync.WaitGroup
	for n := range 40 {
		calls.Go(func() {
			if status := s.post("/v1/permits", fresh(n)).status; status != http.StatusOK &&
				status != http.StatusTooManyRequests {
				t.Errorf("status %d", status)
			}
		})
	}
	calls.Wait()
	// Refused calls may have held some of the records for a moment.
	for n := 40; records.Count("engine", pacing.RequestRecord) < 10; n++ {
		s.permits(fresh(n))
	}
	require.Equal(t, 10, records.Count("engine", pacing.RequestRecord))
	requireFull(t, s.post("/v1/permits", fresh(99)), "this client has 10 ")
}

// silent is a store that reports no numbers of records.
type silent struct{ pacing.RecordStore }

var errSilent = errors.New("silent")

func (silent) HasLog(context.Context, *pacing.Target) (bool, error) { return false, errSilent }
func (silent) HasRequest(context.Context, string, pacing.Request) (bool, error) {
	return false, errSilent
}
func (silent) AddRecords(context.Context, map[pacing.RecordGroup]int, time.Time) (map[pacing.RecordGroup]int, error) {
	return nil, errSilent
}

// TestRecordsThatTheStoreDoesNotTell checks that a store without numbers stops no call, and that the instance counts
// its own records.
func TestRecordsThatTheStoreDoesNotTell(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	store := openStore(t, clock.Now)
	records := pacing.NewRecords(silent{}, pacing.RecordBounds{Client: 2, All: 4}, clock.Now, nil)
	s := newServiceOver(t, store, clock, withPacers(t, store), func(cfg *server.Config) { cfg.Pacers.Bound(records) })
	for n := range 5 {
		require.Equal(t, http.StatusOK, s.post("/v1/permits", fresh(n)).status)
		require.ErrorIs(t, records.Sync(t.Context()), errSilent)
	}
	require.Equal(t, 5, records.CountAll(pacing.RequestRecord))
}
