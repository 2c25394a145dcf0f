package clienttest

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/client/api"
	"capper/internal/live"
	"capper/internal/server"
)

// newChangeable serves a service whose sets opted-out and a+B/c exist only by calls. Its first answers to changes are
// failures, of the given number. The counter counts the changes that arrived.
func newChangeable(t *testing.T, failures int64) (*client.Client, *atomic.Int64) {
	t.Helper()
	calls := new(atomic.Int64)
	wrap := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/members") && calls.Add(1) <= failures {
				h.ServeHTTP(discarded{http.Header{}}, r) // the change is stored, and its answer is lost
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			h.ServeHTTP(w, r)
		})
	}
	url := newCapper(t, wrap, func(cfg *server.Config) {
		cfg.Sets = func() live.Rules {
			return live.Rules{"opted-out": {Live: true}, "a+B/c": {Live: true}, "small": {Live: true, Max: 150_000}}
		}
	})
	c, err := client.New(client.Config{URL: url, MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond})
	require.NoError(t, err)
	return c, calls
}

// TestAFullSetIsAnErrorAtOnce checks that a change of a full set is not repeated, and that the result counts the users
// of the calls before.
func TestAFullSetIsAnErrorAtOnce(t *testing.T) {
	t.Parallel()
	c, calls := newChangeable(t, 0)
	changed, err := c.ChangeSet(t.Context(), "small", client.SetChange{Add: span(1, 250_000)})
	require.True(t, client.HasCode(err, client.CodeTooManyRecords), err)
	require.ErrorContains(t, err, "exceed its maximum of 150000: publish a build that contains the changes")
	require.LessOrEqual(t, calls.Load(), int64(3), "the refused call is not repeated")
	require.Less(t, 0, changed.Added)
	require.LessOrEqual(t, changed.Added, 150_000)
	n := 0
	for range c.SetMembers(t.Context(), "small", time.Time{}) {
		n++
	}
	require.Equal(t, changed.Added, n)
}

// TestWaitingIsReported checks that a client reports each pause with its reason.
func TestWaitingIsReported(t *testing.T) {
	t.Parallel()
	first := true
	url := newCapper(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if first {
				first = false
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusTooManyRequests)
				_, _ = w.Write([]byte(`{"error": {"code": "rate_limited", "message": "slower"}}`))
				return
			}
			h.ServeHTTP(w, r)
		})
	}, func(cfg *server.Config) {
		cfg.Sets = func() live.Rules { return live.Rules{"opted-out": {Live: true}} }
	})
	var pauses []string
	c, err := client.New(client.Config{URL: url, MinBackoff: time.Millisecond,
		Waiting: func(reason error, pause time.Duration) {
			require.LessOrEqual(t, pause, 2*time.Millisecond)
			pauses = append(pauses, reason.Error())
		}})
	require.NoError(t, err)
	changed, err := c.ChangeSet(t.Context(), "opted-out", client.SetChange{Add: []uint32{1}})
	require.NoError(t, err)
	require.Equal(t, 1, changed.Added)
	require.Equal(t, []string{"rate_limited: slower"}, pauses)
}

// discarded is an answer that nobody receives.
type discarded struct{ header http.Header }

func (d discarded) Header() http.Header         { return d.header }
func (d discarded) Write(p []byte) (int, error) { return len(p), nil }
func (d discarded) WriteHeader(int)             {}

func TestChangeSet(t *testing.T) {
	t.Parallel()
	c, calls := newChangeable(t, 2)
	changed, err := c.ChangeSet(t.Context(), "opted-out", client.SetChange{Add: []uint32{42, 7, 42},
		Remove: []uint32{9}})
	require.NoError(t, err)
	require.Equal(t, 2, changed.Added)
	require.Equal(t, 1, changed.Removed)
	require.WithinDuration(t, time.Now(), changed.At, time.Minute)
	require.EqualValues(t, 4, calls.Load(), "one call for each list, and two repeats")

	at := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	changed, err = c.ChangeSet(t.Context(), "opted-out", client.SetChange{Remove: []uint32{42}, At: at})
	require.NoError(t, err)
	require.Equal(t, 1, changed.Superseded)
	require.True(t, at.Equal(changed.At))

	var users []uint32
	for change, err := range c.SetMembers(t.Context(), "opted-out", time.Now().Add(-time.Minute)) {
		require.NoError(t, err)
		require.Equal(t, "anonymous", change.By)
		users = append(users, change.UserID)
	}
	require.Equal(t, []uint32{7, 9, 42}, users)

	for name, change := range map[string]client.SetChange{
		"user 7 must not be in both Add and Remove": {Add: []uint32{7}, Remove: []uint32{7}}, "at least one user": {},
	} {
		_, err = c.ChangeSet(t.Context(), "opted-out", change)
		require.ErrorContains(t, err, name)
	}
	_, err = c.ChangeSet(t.Context(), "unknown", client.SetChange{Add: []uint32{7}})
	require.True(t, client.HasCode(err, client.CodeNotFound), err)
	require.Nil(t, client.NotStored(err))
}

func TestManyUsersAreChangedInSeveralCalls(t *testing.T) {
	t.Parallel()
	c, calls := newChangeable(t, 0)
	changed, err := c.ChangeSet(t.Context(), "a+B/c", client.SetChange{Add: span(1, 250_000), Remove: []uint32{0}})
	require.NoError(t, err)
	require.Equal(t, 250_000, changed.Added)
	require.Equal(t, 1, changed.Removed)
	require.LessOrEqual(t, calls.Load(), int64(6))
	n := 0
	for _, err := range c.SetMembers(t.Context(), "a+B/c", time.Time{}) {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 250_001, n)

	list, err := c.Sets(t.Context())
	require.NoError(t, err)
	require.Len(t, list.Sets, 3)
	require.Equal(t, 250_000, list.Sets[0].Live.Additions)
	require.NoError(t, c.EraseWithSets(t.Context(), 5))
	explained, err := c.Explain(t.Context(), 5)
	require.NoError(t, err)
	require.Empty(t, explained.Live)
	explained, err = c.Explain(t.Context(), 6)
	require.NoError(t, err)
	require.Equal(t, []api.LiveMembership{{Set: "a+B/c", Change: api.ChangeAdded, Since: explained.Live[0].Since,
		By: "anonymous"}}, explained.Live)
}
