package ops

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/segments/ingest/format"
)

// recorder is a service that records the first of equal sends. It answers a call when another one has come,
// or none does.
type recorder struct {
	mu    sync.Mutex
	busy  map[uint32]bool
	first map[uint32]time.Time
	both  []uint32 // users of two calls at one time
	calls chan struct{}
}

// ServeHTTP implements http.Handler.
func (s *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body api.ImportRequest
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	mine := map[uint32]bool{}
	for _, send := range body.Sends {
		if s.busy[send.UserID] && !mine[send.UserID] {
			s.both = append(s.both, send.UserID)
		}
		mine[send.UserID], s.busy[send.UserID] = true, true
	}
	s.mu.Unlock()
	select {
	case s.calls <- struct{}{}:
	case <-s.calls:
	case <-time.After(10 * time.Millisecond):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := api.ImportSummary{Requested: len(body.Sends)}
	for _, send := range body.Sends {
		if _, known := s.first[send.UserID]; known {
			sum.Known++
		} else {
			sum.Added++
			s.first[send.UserID] = send.At
		}
		delete(s.busy, send.UserID)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(api.ImportAnswer{Unavailable: []uint32{}, Summary: sum})
}

// Of a send that a file has several times, at different times and in any order, the earliest is recorded: no two calls
// at one time have sends of one user.
func TestTheEarliestOfEqualSendsIsRecorded(t *testing.T) {
	t.Parallel()
	for _, most := range []int{0, 300} { // in memory, and through files
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			t.Parallel()
			const users, times = 500, 4
			service := &recorder{busy: map[uint32]bool{}, first: map[uint32]time.Time{}, calls: make(chan struct{})}
			server := httptest.NewServer(service)
			defer server.Close()
			to, err := client.New(client.Config{URL: server.URL})
			require.NoError(t, err)
			begin := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
			rows := &sorter{dir: t.TempDir(), most: most}
			for i := range users * times {
				at := begin.Add(time.Duration(times-1-i/users) * time.Second)
				require.NoError(
					t,
					rows.add(format.SendRow{User: 4 * capping.UserID(i%users), At: at.UnixMilli(), MessageID: "m"}),
				)
			}
			s := &sender{api: to, patience: time.Minute, parallel: 4, batch: 100, reach: func(*api.ImportSummary) {}}
			sum, err := s.all(t.Context(), rows)
			require.NoError(t, err)
			require.NoError(t, rows.close())
			require.Equal(t, api.ImportSummary{Requested: users * times, Added: users, Known: users * (times - 1)},
				sum)
			require.Empty(t, service.both)
			for user, at := range service.first {
				require.Equal(t, begin, at, user)
			}
		})
	}
}

// No choice of users leaves a lane without any.
func TestLanesAreEven(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 4, 16} {
		for _, step := range []uint32{1, 2, 4, 10, 1000, 1 << 16} {
			counts := make([]int, n)
			for i := range uint32(10_000) {
				counts[queueOf(capping.UserID(7+i*step), n)]++
			}
			for _, count := range counts {
				require.Greater(t, count, 10_000/n/2, "%d lanes, every %dth user", n, step)
			}
		}
	}
}
