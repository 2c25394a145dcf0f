package app

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/segments/publish"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// liveLists is a service with a suppressed set that builds make, and one that calls alone make.
func liveLists(t *testing.T) *withLists {
	dir := t.TempDir()
	w := configureLists(t, dir, objects.NewDirectory(dir))
	w.configure("suppress: {opted-out: all, stop: [sms]}\nsets: {stop: {live: true}}\n")
	return w
}

// build publishes opted-out with these users and as-of time.
func (w *withLists) build(asOf time.Time, users ...uint32) string {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context())
	base, err := publish.ReadLiveState(ctx, w.location)
	require.NoError(w.t, err)
	candidate := &publish.Candidate{Names: []string{"everybody"}, Bitmaps: []*bitmap.Bitmap{bitmap.Range(0, 20_000)},
		Sets: []publish.Set{{Name: "opted-out", Bitmap: bitmap.Of(users...),
			AsOf:      asOf.UTC().Truncate(time.Millisecond),
			AsOfGiven: true}}}
	done, err := (&publish.Publisher{Location: w.location, Clock: w.now}).Publish(ctx, candidate, base, "forced")
	require.NoError(w.t, err)
	return done.Manifest.Generation
}

// change changes a set and returns the answer.
func (w *withLists) change(set string, change api.SetChange) (answer api.SetChanged) {
	w.t.Helper()
	require.Equal(w.t, http.StatusOK, w.call(http.MethodPost, "/v1/sets/"+set+"/members", change, &answer))
	return answer
}

// allowed returns the users of 1 to 9 whom a send on a channel could reach.
func (w *withLists) allowed(channel string) []uint32 {
	w.t.Helper()
	answer := w.preview(channel, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	require.Empty(w.t, answer.Unavailable)
	return answer.Allowed
}

// TestACallChangesASetAtOnce checks that a change counts before its answer, through restarts, and until a build
// contains it.
func TestACallChangesASetAtOnce(t *testing.T) {
	t.Parallel()
	w := liveLists(t)
	began := w.now()
	first := w.build(began.Add(-time.Hour), 1, 2)
	w.begin(t)
	require.Equal(t, []uint32{3, 4, 5, 6, 7, 8, 9}, w.allowed("push"))

	w.change("opted-out", api.SetChange{Add: []uint32{3, 4}})
	require.Equal(t, []uint32{5, 6, 7, 8, 9}, w.allowed("push"))
	w.change("opted-out", api.SetChange{Remove: []uint32{1, 4}})
	require.Equal(t, []uint32{1, 4, 5, 6, 7, 8, 9}, w.allowed("push"))
	w.change("stop", api.SetChange{Add: []uint32{9}})
	require.Equal(t, []uint32{1, 4, 5, 6, 7, 8, 9}, w.allowed("push"))
	require.Equal(t, []uint32{1, 4, 5, 6, 7, 8}, w.allowed("sms"))

	old := began.Add(-30 * time.Minute)
	require.Equal(t, 1, w.change("opted-out", api.SetChange{Add: []uint32{1}, At: &old}).Superseded)
	require.Contains(t, w.allowed("push"), uint32(1), "a later removal stands")
	old = began.Add(-2 * time.Hour)
	require.Equal(t, 1, w.change("opted-out", api.SetChange{Add: []uint32{8}, At: &old}).Superseded)
	require.Contains(t, w.allowed("push"), uint32(8), "the build is later")

	require.NoError(t, w.Stop())
	w.begin(t)
	require.Equal(t, []uint32{1, 4, 5, 6, 7, 8}, w.allowed("sms"))

	w.ahead.Store(int64(10 * time.Minute))
	w.inUse(w.build(began.Add(-time.Minute), 1, 2, 5))
	require.Equal(t, []uint32{1, 4, 6, 7, 8, 9}, w.allowed("push"), "the changes are later than the export")
	w.inUse(w.build(began.Add(9*time.Minute), 1, 2, 5))
	require.Equal(t, []uint32{3, 4, 6, 7, 8, 9}, w.allowed("push"), "the export contains the changes")
	require.Equal(t, []uint32{3, 4, 6, 7, 8}, w.allowed("sms"), "no build contains stop")
	require.NotEqual(t, first, w.status().Generation)
}

// TestABuildSupersedesChanges checks that lists, pages and metrics show the changes that a newer build overrules as
// superseded, by the rule of decisions and of explanations.
func TestABuildSupersedesChanges(t *testing.T) {
	t.Parallel()
	w := liveLists(t)
	began := w.now()
	w.build(began.Add(-time.Hour), 1, 2)
	w.begin(t)
	w.change("opted-out", api.SetChange{Add: []uint32{3, 4}})
	w.change("opted-out", api.SetChange{Remove: []uint32{1}})
	w.change("stop", api.SetChange{Add: []uint32{9}})
	live := func(set string) *api.LiveSet {
		var list api.Sets
		require.Equal(t, http.StatusOK, w.call(http.MethodGet, "/v1/sets", nil, &list))
		at := slices.IndexFunc(list.Sets, func(s api.SetInfo) bool { return s.Name == set })
		return list.Sets[at].Live
	}
	superseded := func(set string) (users []uint32) {
		var page api.SetMembers
		require.Equal(t, http.StatusOK, w.call(http.MethodGet, "/v1/sets/"+set+"/members", nil, &page))
		for _, change := range page.Changes {
			var e api.Explanation
			require.Equal(t, http.StatusOK, w.call(http.MethodGet, fmt.Sprint("/v1/users/", change.UserID), nil, &e))
			require.Equal(t, !change.Superseded, len(e.Live) == 1, "user %d", change.UserID)
			if change.Superseded {
				users = append(users, change.UserID)
			}
		}
		return users
	}
	in := live("opted-out")
	require.Equal(t, []int{2, 1, 0}, []int{in.Additions, in.Removals, in.Superseded})
	require.Empty(t, superseded("opted-out"))
	first, last := *in.Oldest, *in.Newest

	w.ahead.Store(int64(10 * time.Minute))
	w.inUse(w.build(last.Add(30*time.Second), 1, 2))
	in = live("opted-out") // additions last for a minute longer
	require.Equal(t, []int{2, 0, 1}, []int{in.Additions, in.Removals, in.Superseded})
	require.Equal(t, first, *in.Newest)
	require.Equal(t, []uint32{1}, superseded("opted-out"))

	w.inUse(w.build(began.Add(9*time.Minute), 1, 2))
	in = live("opted-out")
	require.Equal(t, &api.LiveSet{Superseded: 3, Max: in.Max}, in)
	require.Equal(t, []uint32{1, 3, 4}, superseded("opted-out"))
	require.Equal(t, 1, live("stop").Additions)
	require.Empty(t, superseded("stop"))
	metrics := w.metrics()
	for _, line := range []string{`capper_set_live_users{kind="added",set="opted-out"} 0`,
		`capper_set_live_users{kind="removed",set="opted-out"} 0`,
		`capper_set_live_users{kind="superseded",set="opted-out"} 3`,
		`capper_set_live_users{kind="superseded",set="stop"} 0`,
		`capper_set_live_used_ratio{set="opted-out"} 3e-07`} {
		require.Contains(t, metrics, line+"\n")
	}
	require.NotContains(t, metrics, `capper_set_live_oldest_seconds{set="opted-out"}`)
}

// TestRemovedChangesAreNotForgotten checks that changes which a build contains are removed, and that an earlier
// generation cannot bring anybody back afterwards.
func TestRemovedChangesAreNotForgotten(t *testing.T) {
	t.Parallel()
	w := liveLists(t)
	began := w.now()
	first := w.build(began.Add(-time.Hour), 1, 2)
	w.begin(t)
	w.change("opted-out", api.SetChange{Add: []uint32{3}})
	w.ahead.Store(int64(20 * time.Minute))
	second := w.build(began.Add(15*time.Minute), 1, 2, 3)
	w.inUse(second)
	lists := w.lists.store.Lists()
	require.NoError(t, w.lists.free(t.Context(), w.now()))
	require.Equal(t, 1, lists.Len("opted-out"), "the generation is in use for too short a time")
	w.ahead.Store(int64(40 * time.Minute))
	require.NoError(t, w.lists.free(t.Context(), w.now()))
	require.Equal(t, 0, lists.Len("opted-out"))
	require.Equal(t, []uint32{4, 5, 6, 7, 8, 9}, w.allowed("push"))

	w.build(began.Add(-time.Hour), 1, 2) // as a rollback of the set to the first generation would
	testkit.Eventually(t, func() bool {
		return w.status().Segments.Error != ""
	})
	require.Contains(t, w.status().Segments.Error, "the store no longer has the changes by API calls up to")
	require.Equal(t, []string{"as_of"}, w.status().Segments.Refused.Reasons)
	require.Contains(t, w.metrics(), `capper_segments_refused{reason="as_of"} 1`)
	require.Equal(t, second, w.status().Generation)
	require.Equal(t, []uint32{4, 5, 6, 7, 8, 9}, w.allowed("push"))
	require.NotEqual(t, first, second)
}

// TestABuildMayNotEndManyAdditions checks that a build which is newer than many additions by calls, and lacks the
// users,
// is refused while the service runs and at a start, and that may_lose lets it pass. Few additions end with a line in
// the log.
func TestABuildMayNotEndManyAdditions(t *testing.T) {
	t.Parallel()
	w := liveLists(t)
	began := w.now()
	w.build(began.Add(-time.Hour), 1, 2)
	w.begin(t)
	many := make([]uint32, 1001)
	for i := range many {
		many[i] = uint32(i + 5)
	}
	w.change("opted-out", api.SetChange{Add: many[1:]})
	w.ahead.Store(int64(20 * time.Minute))
	few := w.build(began.Add(10*time.Minute), 1, 2)
	w.inUse(few)
	require.Equal(t, []uint32{3, 4, 5, 6, 7, 8, 9}, w.allowed("push"))
	require.Contains(t, w.log.String(), "a build removes users whom API calls had added to a set")
	require.Contains(t, strings.Join(w.status().Config.Problems, "\n"), "lacks users whom calls added before the "+
		"as_of of the build, so it no longer suppresses them (number of users: 1000)")

	w.change("opted-out", api.SetChange{Add: many})
	w.ahead.Store(int64(40 * time.Minute))
	refused := w.build(began.Add(30*time.Minute), 1, 2, 3)
	at := w.refusesNow(refused)
	require.Equal(t, []string{"calls"}, at.Reasons)
	require.Contains(t, at.Error, "API calls added 1001 users to set opted-out, but the build")
	require.Equal(t, []uint32{3, 4}, w.allowed("push"))
	require.NoError(t, w.Stop())
	w.begin(t)
	require.Equal(t, few, w.status().Generation)
	require.Equal(t, []uint32{3, 4}, w.allowed("push"))
	w.refusesNow(refused)

	more := w.build(began.Add(31*time.Minute), append([]uint32{1, 2}, many[:2]...)...)
	w.inUse(more)
	require.Equal(t, []uint32{3, 4, 7, 8, 9}, w.allowed("push"), "999 additions end")
	w.change("opted-out", api.SetChange{Add: many})
	w.ahead.Store(int64(60 * time.Minute))
	last := w.build(began.Add(50*time.Minute), 1, 2)
	w.refusesNow(last)
	w.configure("suppress: {opted-out: {may_lose: 100%}, stop: [sms]}\nsets: {stop: {live: true}}\n")
	w.inUse(last)
}

// TestCallsThatArriveLateAreJudged checks that a service leaves a generation if a replay brings many additions by calls
// which the generation overrules: the store lacked them when the generation was compared.
func TestCallsThatArriveLateAreJudged(t *testing.T) {
	t.Parallel()
	w := liveLists(t)
	began := w.now()
	first := w.build(began.Add(-time.Hour), 1, 2)
	w.begin(t)
	w.ahead.Store(int64(20 * time.Minute))
	second := w.build(began.Add(10*time.Minute), 1, 2)
	w.inUse(second)
	many := make([]uint32, 2001)
	for i := range many {
		many[i] = uint32(i + 5)
	}
	at := began.Add(5 * time.Minute)
	w.change("opted-out", api.SetChange{Add: many[:1000], At: &at})
	require.Equal(t, 1000, w.change("opted-out", api.SetChange{Add: many[:1000], At: &at}).Superseded)
	require.Equal(t, []uint32{3, 4, 5, 6, 7, 8, 9}, w.allowed("push"), "few additions end")
	require.Equal(t, second, w.status().Generation)
	w.change("opted-out", api.SetChange{Add: many, At: &at})
	w.inUse(first)
	require.Equal(t, []string{"calls"}, w.refusesNow(second).Reasons)
	require.Equal(t, []uint32{3, 4}, w.allowed("push"))

	w.configure("suppress: {opted-out: {may_lose: 100%}, stop: [sms]}\nsets: {stop: {live: true}}\n")
	w.inUse(second)
	require.Equal(t, 2001, w.change("opted-out", api.SetChange{Add: many, At: &at}).Superseded)
	require.Equal(t, second, w.status().Generation)
}

// TestNoInstanceAllowsAfterTheAnswer changes a set by one instance and asks another instance at once, many times, and
// expects the latest answer to count.
func TestNoInstanceAllowsAfterTheAnswer(t *testing.T) {
	t.Parallel()
	store := onRedis(testcluster.Start(t, testcluster.Options{Replicas: 1}).Addrs...)
	first := liveLists(t)
	first.rest = strings.Replace(first.rest, "store: "+onEmbedded(first.dir), "store: "+store, 1)
	first.configure("suppress: {opted-out: all, stop: [sms]}\nsets: {stop: {live: true}}\n")
	first.build(first.now().Add(-time.Hour), 1, 2)
	first.begin(t)
	other := *first.withSets // the same configuration and segments
	second := &withLists{dir: first.dir, withSets: &other}
	second.begin(t)
	sides := []*withLists{first, second}
	testkit.Eventually(t, func() bool {
		return first.call(http.MethodPost, "/v1/sets/opted-out/members", api.SetChange{Add: []uint32{3}}, new(any)) ==
			http.StatusOK
	})
	out := map[uint32]bool{1: true, 2: true, 3: true}
	r := rand.New(rand.NewPCG(24, 0))
	for i := range 300 {
		by, asked, user := sides[r.IntN(2)], sides[r.IntN(2)], uint32(r.IntN(9)+1)
		change := api.SetChange{Add: []uint32{user}}
		if out[user] {
			change = api.SetChange{Remove: []uint32{user}}
		}
		by.change("opted-out", change)
		out[user] = !out[user]
		if i%3 == 0 {
			continue // several changes before the next question
		}
		request := api.FilterRequest{MessageID: fmt.Sprint("m", i), UserIDs: []uint32{user}}
		if out[user] {
			require.Len(t, asked.filter(request).Denied, 1, "user %d in round %d", user, i)
		} else { // the other instance may withhold the send for a second
			require.Eventually(t, func() bool { return len(asked.filter(request).Allowed) == 1 }, testkit.Patience,
				50*time.Millisecond) // a shorter tick makes thousands of calls in these seconds
		}
	}
}

// TestABuildMayNotDropALiveSet checks that a set which calls may make is still guarded once a build had it.
func TestABuildMayNotDropALiveSet(t *testing.T) {
	t.Parallel()
	w := liveLists(t)
	w.configure("suppress: {opted-out: all}\nsets: {opted-out: {live: true}}\n")
	first := w.build(w.now().Add(-time.Hour), 1, 2)
	w.begin(t)
	w.change("opted-out", api.SetChange{Add: []uint32{3}})
	w.publish(nil)
	testkit.Eventually(t, func() bool { return w.status().Segments.Error != "" })
	require.Contains(t, w.status().Segments.Error, "set opted-out with its 2 users is missing")
	require.Equal(t, first, w.status().Generation)
	require.Equal(t, []uint32{4, 5, 6, 7, 8, 9}, w.allowed("push"))
}
