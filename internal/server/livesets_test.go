package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/audit"
	"capper/internal/audit/archive"
	auditjournal "capper/internal/audit/journal"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/live"
	"capper/internal/objects"
	"capper/internal/server"
	"capper/internal/server/gate"
	"capper/internal/testkit"
)

// changeStore is a store that keeps live changes in memory. Its faults are those of the next change.
type changeStore struct {
	capping.Store
	lists *live.Lists
	clock func() time.Time

	mu       sync.Mutex
	unstored []capping.UserID
	fault    error
}

func (s *changeStore) Unwrap() capping.Store { return s.Store }
func (s *changeStore) Lists() *live.Lists    { return s.lists }

func (s *changeStore) Change(_ context.Context, b *live.Batch) (live.Stored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault != nil {
		return live.Stored{Unstored: s.unstored}, s.fault
	}
	at := s.lists.Stamp(b, capping.InstantOf(s.clock()))
	record := live.RecordOf(b, at)
	s.lists.Apply(record)
	return live.Stored{At: at, Superseded: s.lists.Superseded(record)}, nil
}

func (s *changeStore) fail(err error, unstored ...capping.UserID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.unstored = err, unstored
}

func (*changeStore) Renew(context.Context, []capping.UserID) error          { return nil }
func (*changeStore) Free(context.Context, map[string]capping.Instant) error { return nil }
func (*changeStore) AnnounceAsOf(map[string]capping.Instant)                {}
func (*changeStore) OthersAsOf() (asOf map[string]capping.Instant, ok bool) { return nil, true }

// changedSnapshot adds live changes to the sets of a generation.
type changedSnapshot struct {
	snapshot
	lists *live.Lists
	rules live.Rules
}

func (s changedSnapshot) Set(name string) (capping.Set, bool) {
	base := s.Snapshot.Set(name)
	return s.lists.View(name, base, 0, nil), base != nil || s.rules.IsLive(name)
}

// newChangeService returns a service with sets, and the store of their live changes.
func newChangeService(t testing.TB, change ...func(*server.Config)) (*service, *changeStore) {
	t.Helper()
	clock := testkit.NewClockAt(startOfTest)
	store := &changeStore{Store: openStore(t, clock.Now), lists: live.New(0), clock: clock.Now}
	rules := live.Rules{"sms-stop": {Live: true}, "bounced": {Max: 4}}
	use := func(cfg *server.Config) {
		pin := cfg.Generations
		cfg.Capper = capping.New(store, func() capping.Segments {
			current, err := pin("")
			require.NoError(t, err)
			return changedSnapshot{snapshot{Snapshot: current}, store.lists, rules}
		}, setPolicy(t), clock.Now)
		cfg.Sets = func() live.Rules { return rules }
	}
	s, _ := newSetServiceOver(t, store, clock, append([]func(*server.Config){use}, change...)...)
	return s, store
}

func (s *service) changeSet(set string, body any) *api.SetChanged {
	s.t.Helper()
	r := s.post("/v1/sets/"+set+"/members", body)
	require.Equal(s.t, http.StatusOK, r.status, string(r.body))
	return decodeAs[api.SetChanged](s.t, r.body)
}

func (s *service) changesOf(set, query string) *api.SetMembers {
	s.t.Helper()
	r := s.get("/v1/sets/" + set + "/members" + query)
	require.Equal(s.t, http.StatusOK, r.status, string(r.body))
	return decodeAs[api.SetMembers](s.t, r.body)
}

func TestAChangeCountsBeforeItsAnswer(t *testing.T) {
	t.Parallel()
	s, _ := newChangeService(t)
	now := startOfTest.Truncate(time.Millisecond).UTC()
	require.Equal(t, []uint32{42}, s.filterIDs(fields{"message_id": "m1", "channel": "email",
		"user_ids": []int{42}}).Allowed)

	require.Equal(t, &api.SetChanged{Set: "opted-out", At: now, Added: 2, Removed: 1},
		s.changeSet("opted-out", fields{"add": []int{42, 9, 42}, "remove": []int{3}}))
	a := s.filterIDs(fields{"message_id": "m2", "channel": "email", "user_ids": []int{3, 9, 11, 42}})
	require.Equal(t, []uint32{3, 11}, a.Allowed)
	require.Equal(t, map[string]int{"opted-out": 2}, a.Summary.Suppressed)

	require.Equal(t, &api.SetChanged{Set: "opted-out", At: now.Add(-time.Hour), Added: 0, Removed: 2, Superseded: 1},
		s.changeSet("opted-out", fields{"remove": []int{42, 7}, "at": now.Add(-time.Hour).Format(time.RFC3339Nano)}),
		"a later addition stands")
	require.Equal(t, []uint32{7}, s.filterIDs(fields{"message_id": "m3", "channel": "email",
		"user_ids": []int{7, 42}}).Allowed)

	s.changeSet("sms-stop", fields{"add_bitmap": bitmapText(t, 1, 5, 70_000)})
	s.changeSet("country/sg", fields{"remove_bitmap": bitmapText(t, 1), "add": []int{12}})
	s.changeSet("country%2Fsg", fields{"add": []int{13}})
	require.Len(t, s.changesOf("country/sg", "").Changes, 3)
}

func TestAChangeOfTheNearFutureIsNow(t *testing.T) {
	t.Parallel()
	s, _ := newChangeService(t)
	soon := startOfTest.Add(500 * time.Millisecond).UTC().Format(time.RFC3339Nano)
	require.Equal(t, startOfTest.UTC(), s.changeSet("opted-out", fields{"add": []int{1}, "at": soon}).At)
	later := startOfTest.Add(1500 * time.Millisecond).UTC().Format(time.RFC3339Nano)
	f := s.post("/v1/sets/opted-out/members", fields{"add": []int{1}, "at": later}).failure(t)
	require.Equal(t, "at", f.Error.Field)
	require.Contains(t, f.Error.Message, "is in the future: the time is now 2037-11-20T09:12:44.120Z")
}

func TestRefusedChanges(t *testing.T) {
	t.Parallel()
	s, store := newChangeService(t)
	many := make([]string, 100_001)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	list := strings.Join(many, ",")
	for name, test := range map[string]struct {
		set, body       string
		status          int
		field, contains string
	}{
		"empty":         {"opted-out", `{}`, 400, "add", "add or remove is required"},
		"no users":      {"opted-out", `{"add": [], "remove": []}`, 400, "add", "the lists are empty"},
		"empty bitmap":  {"opted-out", `{"remove_bitmap": "` + bitmapText(t) + `"}`, 400, "remove_bitmap", "the lists are empty"},
		"both lists":    {"opted-out", `{"add": [1, 7], "remove": [9, 7]}`, 400, "remove", "user 7 is also in add"},
		"both forms":    {"opted-out", `{"add": [1], "add_bitmap": "` + bitmapText(t, 2) + `"}`, 400, "add_bitmap", "add and add_bitmap are both given"},
		"twice":         {"opted-out", `{"add": [1], "add": [2]}`, 400, "add", "is given twice"},
		"other field":   {"opted-out", `{"user_ids": [1]}`, 400, "user_ids", "no such field; its fields are add, "},
		"text":          {"opted-out", `{"add": ["x"]}`, 400, "add[0]", "is not a user id"},
		"null":          {"opted-out", `{"add": null}`, 400, "add", "is not an array"},
		"no time":       {"opted-out", `{"add": [1], "at": "yesterday"}`, 400, "at", "is not an RFC 3339 time"},
		"early":         {"opted-out", `{"add": [1], "at": "2024-01-01T00:00:00Z"}`, 400, "at", "must be after 2024-01-01"},
		"trailing":      {"opted-out", `{"add": [1]} x`, 400, "", "nothing may follow"},
		"too many":      {"opted-out", `{"add": [` + list + `]}`, 413, "add", "has more than 100000 ids: split the call"},
		"too many both": {"opted-out", `{"add": [` + strings.Join(many[:60_000], ",") + `], "remove": [` + strings.Join(many[60_000:], ",") + `]}`, 413, "add", "100001 users: at most 100000"},
		"unknown set":   {"opted-ot", `{"add": [1]}`, 404, "", `the nearest is "opted-out"`},
		"time zone":     {"tz/Asia/Singapore", `{"add": [1]}`, 409, "", "only builds change such sets"},
		"segment":       {"vip", `{"add": [1]}`, 409, "", `"vip" is a segment: only builds change segments`},
		"unknown zone":  {"tz/x", `{"add": [1]}`, 409, "", "only builds change such sets"},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.with(t).post("/v1/sets/"+test.set+"/members", test.body)
			require.Equal(t, test.status, r.status, string(r.body))
			f := r.failure(t)
			require.Equal(t, test.field, f.Error.Field)
			require.Contains(t, f.Error.Message, test.contains)
		})
	}
	require.Empty(t, store.lists.Sizes(), "a refused call changes nothing")
	r := s.get("/v1/sets/opted-out/members?limit=0")
	require.Equal(t, "limit", r.failure(t).Error.Field)
	require.Equal(t, "cursor", s.get("/v1/sets/opted-out/members?cursor=-1").failure(t).Error.Field)
	require.Equal(t, "since", s.get("/v1/sets/opted-out/members?since=soon").failure(t).Error.Field)
	f := s.get("/v1/sets/opted-out/members?since=2037-11-21").failure(t)
	require.Equal(t, "since", f.Error.Field)
	require.Equal(t, "since: 2037-11-21 is in the future: the time is now 2037-11-20T09:12:44.120Z", f.Error.Message)
	r = s.get("/v1/sets/nothing/members")
	require.Equal(t, http.StatusNotFound, r.status)
	require.Regexp(t, `^there is no set "nothing": generation [^ ]+ has no set of this name, and the configuration does `+
		`not declare the set \(sets: \{nothing: \{live: true\}\}\); calls may change bounced, country/sg, opted-out, sms-stop$`,
		r.failure(t).Error.Message)
	require.Equal(t, http.StatusNotFound, s.get("/v1/sets/opted-out").status)
}

func TestAFullSetRefusesNewUsers(t *testing.T) {
	t.Parallel()
	s, _ := newChangeService(t)
	s.changeSet("bounced", fields{"add": []int{1, 2, 3, 4}})
	r := s.post("/v1/sets/bounced/members", fields{"add": []int{4, 5}})
	require.Equal(t, http.StatusTooManyRequests, r.status)
	require.Equal(t, "60", r.header.Get("Retry-After"))
	require.Equal(t, "the set has 4 live changes (by API calls), and 1 more would exceed its maximum of 4: "+
		"publish a build that contains the changes, or raise max_live under sets", r.failure(t).Error.Message)
	require.Equal(t, 4, s.changeSet("bounced", fields{"remove": []int{1, 2, 3, 4}}).Removed,
		"users with a change always fit")
	metrics := string(s.get("/metrics").body)
	for _, line := range []string{
		`capper_set_changes_total{kind="added",set="bounced"} 4`,
		`capper_set_changes_total{kind="removed",set="bounced"} 4`,
		`capper_set_changes_total{kind="added",set="sms-stop"} 0`,
		`capper_set_changes_refused_total{set="bounced"} 1`,
		`capper_set_changes_refused_total{set="sms-stop"} 0`,
		`capper_set_live_users{kind="added",set="bounced"} 0`,
		`capper_set_live_users{kind="removed",set="bounced"} 4`,
		`capper_set_live_users{kind="superseded",set="bounced"} 0`,
		`capper_set_live_used_ratio{set="bounced"} 1`,
		`capper_set_live_oldest_seconds{set="bounced"} 0`,
	} {
		require.Contains(t, metrics, line+"\n")
	}

	for _, user := range []string{"1", "2"} { // erased users leave room, and take it again
		require.Equal(t, http.StatusNoContent, s.call(http.MethodDelete, "/v1/users/"+user+"?sets=true", "").status)
	}
	s.changeSet("bounced", fields{"add": []int{5}})
	require.Equal(t, http.StatusTooManyRequests,
		s.post("/v1/sets/bounced/members", fields{"add": []int{1, 2}}).status)
	s.changeSet("bounced", fields{"add": []int{1}})
	require.Equal(t, http.StatusTooManyRequests, s.post("/v1/sets/bounced/members", fields{"add": []int{6}}).status)
}

func TestChangesThatMayNotBeStored(t *testing.T) {
	t.Parallel()
	s, store := newChangeService(t)
	store.fail(errors.New("no replica"), 9, 42)
	r := s.post("/v1/sets/opted-out/members", fields{"add": []int{42, 5}, "remove": []int{9}})
	require.Equal(t, http.StatusServiceUnavailable, r.status)
	require.NotEmpty(t, r.header.Get("Retry-After"))
	f := decodeAs[api.Error](t, r.body)
	require.Equal(t, []uint32{9, 42}, f.Unavailable)
	require.Equal(t, "1 of 3 users are stored; it is not known whether the changes of 2 users are stored: repeat the "+
		"call until it answers 200; repeating is safe", f.Error.Message)

	store.fail(errors.New("no replica"), 9)
	f = decodeAs[api.Error](t, s.post("/v1/sets/opted-out/members", fields{"remove": []int{9}}).body)
	require.Contains(t, f.Error.Message, "whether the changes of 1 user are stored")

	store.fail(errors.New("no server"))
	f = decodeAs[api.Error](t, s.post("/v1/sets/opted-out/members", fields{"add": []int{42, 5},
		"remove": []int{9}}).body)
	require.Equal(t, []uint32{5, 9, 42}, f.Unavailable, "all are unknown")
	require.Equal(t, "it is not known whether the changes of 3 users are stored: repeat the call until it answers "+
		"200; repeating is safe", f.Error.Message)

	store.fail(fmt.Errorf("partition 3: %w", live.ErrOlderInstance))
	r = s.post("/v1/sets/opted-out/members", fields{"add": []int{42}})
	require.Equal(t, http.StatusServiceUnavailable, r.status)
	require.Equal(t, "nothing is stored: "+live.ErrOlderInstance.Error(), r.failure(t).Error.Message)
}

func TestSetsAreListed(t *testing.T) {
	t.Parallel()
	s, _ := newChangeService(t)
	s.changeSet("opted-out", fields{"add": []int{42, 43}, "remove": []int{3}})
	s.clock.Advance(time.Minute)
	s.changeSet("opted-out", fields{"add": []int{44}})
	list := decodeAs[api.Sets](t, s.get("/v1/sets").body)
	byName := map[string]api.SetInfo{}
	var names []string
	for _, set := range list.Sets {
		names = append(names, set.Name)
		byName[set.Name] = set
	}
	require.Equal(t, []string{"bounced", "country/sg", "opted-out", "sms-stop", "tz/America/New_York",
		"tz/Asia/Singapore"}, names)
	first, last := startOfTest.UTC(), startOfTest.Add(time.Minute).UTC()
	users := uint64(4)
	require.Equal(t, api.SetInfo{Name: "opted-out", Users: &users, Suppressed: true, Live: &api.LiveSet{Additions: 3,
		Removals: 1, Oldest: &first, Newest: &last, Max: live.DefaultMax}}, byName["opted-out"])
	require.Equal(t, api.SetInfo{Name: "sms-stop", Configured: true, Live: &api.LiveSet{Max: live.DefaultMax}},
		byName["sms-stop"])
	require.Equal(t, 4, byName["bounced"].Live.Max)
	require.True(t, byName["tz/Asia/Singapore"].OnlyBuilds)
	require.Nil(t, byName["tz/Asia/Singapore"].Live)

	page := s.changesOf("opted-out", "?limit=2")
	require.Equal(t, []api.MemberChange{{UserID: 3, Change: "removed", At: first, By: "anonymous"},
		{UserID: 42, Change: "added", At: first, By: "anonymous"}}, page.Changes)
	page = s.changesOf("opted-out", "?limit=2&cursor="+*page.Next)
	require.Len(t, page.Changes, 2)
	require.Nil(t, page.Next)
	for _, since := range []string{"2037-11-20", "1d"} {
		require.Len(t, s.changesOf("opted-out", "?since="+since).Changes, 4)
	}
	for _, since := range []string{"30s", last.Format(time.RFC3339)} {
		page = s.changesOf("opted-out", "?since="+since)
		require.Equal(t, []api.MemberChange{{UserID: 44, Change: "added", At: last, By: "anonymous"}}, page.Changes)
	}
	require.Empty(t, s.changesOf("sms-stop", "").Changes)
}

func TestAStoreWithoutChangesKeepsSetsToBuilds(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClockAt(startOfTest)
	s, _ := newSetServiceOver(t, plainStore{openStore(t, clock.Now)}, clock)
	r := s.post("/v1/sets/opted-out/members", fields{"add": []int{42}})
	require.Equal(t, http.StatusConflict, r.status)
	require.Equal(t, http.StatusConflict, s.get("/v1/sets/opted-out/members").status)
	for _, set := range decodeAs[api.Sets](t, s.get("/v1/sets").body).Sets {
		require.True(t, set.OnlyBuilds)
		require.Nil(t, set.Live)
	}
	require.Equal(t, http.StatusNoContent, s.call(http.MethodDelete, "/v1/users/42?sets=true", "").status)
}

// plainStore hides the optional parts of a store.
type plainStore struct{ capping.Store }

func TestExplainTellsLiveChanges(t *testing.T) {
	t.Parallel()
	s, _ := newChangeService(t)
	s.changeSet("opted-out", fields{"add": []int{42}, "remove": []int{3}})
	e := decodeAs[api.Explanation](t, s.get("/v1/users/42").body)
	require.Equal(t, []api.Suppression{{Set: "opted-out"}}, e.Suppressed)
	require.Equal(t, []api.LiveMembership{{Set: "opted-out", Change: "added", Since: startOfTest.UTC(),
		By: "anonymous"}}, e.Live)
	e = decodeAs[api.Explanation](t, s.get("/v1/users/3").body)
	require.Empty(t, e.Suppressed)
	require.Equal(t, "removed", e.Live[0].Change)
	require.Nil(t, decodeAs[api.Explanation](t, s.get("/v1/users/7").body).Live)
}

func TestErasureKeepsOptOutsUnlessAsked(t *testing.T) {
	t.Parallel()
	s, store := newChangeService(t)
	s.changeSet("opted-out", fields{"add": []int{42}})
	s.changeSet("country/sg", fields{"remove": []int{42}})
	require.Equal(t, http.StatusBadRequest, s.call(http.MethodDelete, "/v1/users/42?sets=yes", "").status)
	for _, query := range []string{"", "?sets=false"} {
		require.Equal(t, http.StatusNoContent, s.call(http.MethodDelete, "/v1/users/42"+query, "").status)
		require.Len(t, decodeAs[api.Explanation](t, s.get("/v1/users/42").body).Live, 2)
	}
	store.fail(errors.New("no server"))
	require.Equal(t, http.StatusServiceUnavailable, s.call(http.MethodDelete, "/v1/users/42?sets=true", "").status)
	store.fail(nil)
	for range 2 {
		require.Equal(t, http.StatusNoContent, s.call(http.MethodDelete, "/v1/users/42?sets=true", "").status)
		e := decodeAs[api.Explanation](t, s.get("/v1/users/42").body)
		require.Empty(t, e.Live)
		require.Empty(t, e.Suppressed)
	}
	require.Empty(t, s.changesOf("opted-out", "").Changes)
}

func TestKeysAreBoundToSets(t *testing.T) {
	t.Parallel()
	s, _ := newChangeService(t, func(cfg *server.Config) {
		crm := key("crm.secret", "crm", gate.ScopeLists)
		crm.Sets = []string{"opted-out", "sms-stop", "mail-stop"}
		cfg.Access.Keys = []gate.Key{crm, key("all.secret", "all", gate.ScopeLists),
			key("reader.secret", "reader", gate.ScopeRead), key("engine.secret", "engine", gate.ScopeFilter)}
	})
	as := func(key string) *service {
		other := *s
		other.key = key + ".secret"
		return &other
	}
	as("crm").changeSet("opted-out", fields{"add": []int{42}})
	as("all").changeSet("bounced", fields{"add": []int{42}})
	r := as("crm").post("/v1/sets/bounced/members", fields{"add": []int{42}})
	require.Equal(t, http.StatusForbidden, r.status)
	require.Contains(t, r.failure(t).Error.Message, `the API key "crm" may not use the set "bounced"`)
	r = as("reader").post("/v1/sets/opted-out/members", fields{"add": []int{42}})
	require.Equal(t, http.StatusForbidden, r.status)
	require.Contains(t, r.failure(t).Error.Message, `the API key "reader" lacks the scope "lists"`)
	r = as("engine").get("/v1/sets")
	require.Equal(t, http.StatusForbidden, r.status)
	require.Contains(t, r.failure(t).Error.Message, `the API key "engine" lacks the scope "read" or "lists"`)

	require.Len(t, decodeAs[api.Sets](t, as("reader").get("/v1/sets").body).Sets, 6)
	require.Len(t, decodeAs[api.Sets](t, as("all").get("/v1/sets").body).Sets, 6)
	own := decodeAs[api.Sets](t, as("crm").get("/v1/sets").body).Sets
	require.Len(t, own, 2)
	require.Equal(t, "crm", as("crm").changesOf("opted-out", "").Changes[0].By)
	require.Equal(t, http.StatusForbidden, as("crm").get("/v1/sets/bounced/members").status)
	r = as("crm").get("/v1/sets/mail-stop/members")
	require.Equal(t, http.StatusNotFound, r.status)
	require.Contains(t, r.failure(t).Error.Message, "calls may change opted-out, sms-stop", "and nothing of others")
	require.Len(t, as("reader").changesOf("bounced", "").Changes, 1)
	require.Equal(t, "crm", decodeAs[api.Explanation](t, as("reader").get("/v1/users/42").body).Live[1].By)
}

func TestChangesTakeTheRateOfTheirUsers(t *testing.T) {
	t.Parallel()
	s, _ := newChangeService(t, func(cfg *server.Config) {
		cfg.Access.Rate = capping.Rate{UsersPerSecond: 10, Burst: 10}
	})
	require.Equal(t, http.StatusRequestEntityTooLarge, s.post("/v1/sets/opted-out/members",
		fields{"add": span(0, 11)}).status)
	r := s.post("/v1/sets/opted-out/members", fields{"add": span(0, 4), "remove": span(10, 14)})
	require.Equal(t, http.StatusOK, r.status)
	require.Equal(t, "2", r.header.Get("RateLimit-Remaining"))
	require.Equal(t, http.StatusTooManyRequests, s.post("/v1/sets/opted-out/members", fields{"add": span(0, 4)}).status)
}

func TestChangesAreInTheAudit(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "audit")
	j, err := auditjournal.Open(t.Context(), auditjournal.Config{To: dir})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close(context.Background())) })
	s, store := newChangeService(t, func(cfg *server.Config) { cfg.Journal = j })
	r := s.post("/v1/sets/opted-out/members", fields{"add": []int{42, 43}, "remove": []int{3}})
	require.Equal(t, http.StatusOK, r.status)
	store.fail(errors.New("no replica"), 42)
	require.Equal(t, http.StatusServiceUnavailable, s.post("/v1/sets/opted-out/members",
		fields{"add": []int{42, 44}, "at": "2037-11-20T08:00:00Z"}).status)
	require.NoError(t, j.Flush(t.Context()))

	at, err := objects.Open(t.Context(), dir, objects.S3Config{})
	require.NoError(t, err)
	var found []*audit.Record
	for record, err := range archive.New(at, nil).Records(t.Context(),
		archive.Query{Kinds: []audit.Kind{audit.Change}}) {
		require.NoError(t, err)
		found = append(found, record)
	}
	require.Len(t, found, 2)
	if found[0].Change.RequestID != r.header.Get("X-Request-Id") { // records of one time have no order
		slices.Reverse(found)
	}
	first := found[0]
	require.Equal(t, &audit.SetChange{Set: "opted-out", At: capping.InstantOf(startOfTest),
		RequestID: r.header.Get("X-Request-Id")}, first.Change)
	require.Equal(t, "anonymous", first.Client)
	groups := map[audit.Outcome][]uint32{}
	for _, g := range first.Groups {
		groups[g.Outcome] = g.Users.IDs()
	}
	require.Equal(t, map[audit.Outcome][]uint32{audit.Added: {42, 43}, audit.Removed: {3}}, groups)
	require.Equal(t, []audit.Group{{Outcome: audit.Added, Users: bitmap.Of(44)},
		{Outcome: audit.ChangeUnavailable, Users: bitmap.Of(42)}}, found[1].Groups)
}
