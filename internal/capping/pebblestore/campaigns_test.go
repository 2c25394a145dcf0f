package pebblestore

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
	"capper/internal/capping/storetest"
	"capper/internal/messages"
	"capper/internal/messages/messagestest"
	"capper/internal/testkit"
)

func TestCampaigns(t *testing.T) {
	t.Parallel()
	messagestest.Run(t, func(t *testing.T, clock func() time.Time) messagestest.Store {
		return openMessages(t, clock, IDs{})
	})
}

// openMessages opens a store that sweeps nothing: the tests turn the clock forward by days, and then want messages that
// a sweep would have removed.
func openMessages(t *testing.T, clock func() time.Time, kind IDs) *Store {
	s, err := Open(t.Context(), Config{Path: t.TempDir(), IDs: kind, Clock: clock, ClockBound: farAhead,
		SweepInterval: time.Hour})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

type idText struct {
	token   capping.Token
	channel capping.Channel
}

// campaignsDir is the environment variable that makes the test binary the process to kill.
const campaignsDir = "CAPPER_TEST_CAMPAIGNS_DIR"

// campaignsChild records and releases sends of a few messages without end, from several goroutines.
// campaignsChild writes a byte for each answered call.
func campaignsChild(dir string, stdout io.Writer) error {
	s, err := Open(context.Background(), Config{Path: dir})
	if err != nil {
		return err
	}
	var callers sync.WaitGroup
	errs := make(chan error, 4)
	for range 4 {
		callers.Go(func() {
			for {
				if err := callOnce(s); err != nil {
					errs <- err
					return
				}
				_, _ = stdout.Write([]byte{'.'})
			}
		})
	}
	callers.Wait()
	return <-errs
}

// callOnce makes a random call.
func callOnce(s *Store) error {
	users := make([]capping.UserID, 1+rand.IntN(1<<rand.IntN(14)))
	first := capping.UserID(rand.Uint32N(200_000))
	for i := range users {
		users[i] = first + capping.UserID(i)*capping.UserID(1+len(users)%3)
	}
	b := benchBatch(fmt.Sprintf("campaign-%d", rand.IntN(3)), users)
	b.Channel = capping.Channel(rand.IntN(3))
	if rand.IntN(3) > 0 {
		return s.Filter(context.Background(), b, make([]capping.Verdict, len(users)))
	}
	return s.Release(context.Background(), b.Token, b.Channel, users, make([]capping.Released, len(users)))
}

// TestCountsAreKept checks how long counts are kept after the last call: as long as the logs, at least a day
// and at most 31 days.
func TestCountsAreKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ retention, kept time.Duration }{
		"as logs":         {7 * 24 * time.Hour, 7 * 24 * time.Hour},
		"a day":           {time.Minute, messages.MinKeep},
		"a month and not": {90 * 24 * time.Hour, messages.MaxKeep},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := storetest.NewClock()
			config := Config{Path: t.TempDir(), Clock: clock.Now, SweepInterval: time.Hour, ClockBound: farAhead}
			s := reopen(t, config)
			b := benchBatch("kept", spread(1000))
			b.Retention = c.retention
			send := func() {
				require.NoError(t, s.Filter(context.Background(), b,
					make([]capping.Verdict, len(b.Users))))
			}
			send()
			clock.Advance(c.kept - time.Hour)
			send()
			before, err := s.MessageCounts(context.Background(), b.Message)
			require.NoError(t, err)
			clock.Advance(c.kept - time.Minute)
			sweepCounts(t, s)
			found, err := s.MessageCounts(context.Background(), b.Message)
			require.NoError(t, err)
			require.Equal(t, before, found)
			clock.Advance(2 * time.Minute)
			sweepCounts(t, s)
			found, err = s.MessageCounts(context.Background(), b.Message)
			require.NoError(t, err)
			require.Empty(t, found)
			require.Zero(t, campaignKeys(t, s), "nothing is left of it")

			users := len(b.Users)
			b.Users, b.Groups = spread(2 * users)[users:], make([]uint8, users) // users without the send
			send()
			found, err = s.MessageCounts(context.Background(), b.Message)
			require.NoError(t, err)
			require.Equal(t, messages.Sends{Recorded: int64(users)}, found[0].Sends, "it begins at 0")
			require.NoError(t, s.Close())
		})
	}
}

// TestActivityIsKeptForAMonth checks that the activity of an hour stays for 31 days, however short the retention is.
func TestActivityIsKeptForAMonth(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	s := reopen(t, Config{Path: t.TempDir(), Clock: clock.Now, SweepInterval: time.Hour, ClockBound: farAhead})
	hour := messages.Activity(clock.Now())
	answers := messages.Answers{Calls: 1, Asked: 1, Last: capping.InstantOf(clock.Now())}
	delta := messages.Delta{Key: messages.Key{Message: hour}, Answers: answers}
	require.NoError(t, s.AddAnswers(t.Context(), []messages.Delta{delta}))
	clock.Advance(messages.ActivityKeep - time.Minute)
	sweepCounts(t, s)
	found, err := s.MessageCounts(t.Context(), hour)
	require.NoError(t, err)
	require.Len(t, found, 1)
	clock.Advance(2 * time.Minute)
	sweepCounts(t, s)
	require.Zero(t, campaignKeys(t, s))
	require.NoError(t, s.Close())
}

// TestTitlesAreKept checks that a title is kept as long as the counts of its message, and as long without any.
func TestTitlesAreKept(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	config := Config{Path: t.TempDir(), Clock: clock.Now, SweepInterval: time.Hour, ClockBound: farAhead}
	s := reopen(t, config)
	counted, early := capping.Message{Namespace: "growth", ID: "counted"}, capping.Message{ID: "early"}
	call := func() {
		answers := messages.Answers{Calls: 1, Asked: capping.BulkUsers, Last: capping.InstantOf(clock.Now())}
		require.NoError(t, s.AddAnswers(t.Context(), []messages.Delta{{Key: messages.Key{Message: counted, Channel: 1},
			Answers: answers}}))
	}
	call()
	require.NoError(t, s.SetTitle(t.Context(), counted, "Spring"))
	require.NoError(t, s.SetTitle(t.Context(), early, "Early"))
	require.NoError(t, s.Close())
	s = reopen(t, config)
	keep := messages.KeepFor(0)
	check := func(titles ...string) {
		t.Helper()
		sweepCounts(t, s)
		next, err := s.counts.SweepTitles(titlePrefix, 1, capping.InstantOf(clock.Now()), keep)
		for err == nil && next != nil {
			next, err = s.counts.SweepTitles(next, 1, capping.InstantOf(clock.Now()), keep)
		}
		require.NoError(t, err)
		for i, message := range []capping.Message{counted, early} {
			title, err := s.Title(t.Context(), message)
			require.NoError(t, err)
			require.Equal(t, titles[i], title)
		}
	}
	clock.Advance(keep - time.Minute)
	check("Spring", "Early")
	call()
	clock.Advance(2 * time.Minute)
	check("Spring", "")
	clock.Advance(keep)
	check("", "")
	require.Zero(t, campaignKeys(t, s), "nothing is left")
	require.NoError(t, s.Close())
}

func sweepCounts(t *testing.T, s *Store) {
	t.Helper()
	next, err := s.sweepCounts(s.counts.Sweep)(context.Background(), []byte{database.KeyMeta, 0xFF, 3})
	require.NoError(t, err)
	require.Nil(t, next)
}

// spread returns the users 0 to n-1.
func spread(n int) (users []capping.UserID) {
	for i := range n {
		users = append(users, capping.UserID(i)*100)
	}
	return users
}

// campaignKeys returns the number of keys with counts.
func campaignKeys(t *testing.T, s *Store) (n int) {
	t.Helper()
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{database.KeyMeta, 0xFF},
		UpperBound: []byte{database.KeyLog}})
	require.NoError(t, err)
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	require.NoError(t, it.Close())
	return n
}

// TestAStoreFromBeforeCounts checks that a store from before counts existed starts to count, without earlier
// sends.
func TestAStoreFromBeforeCounts(t *testing.T) {
	t.Parallel()
	s := reopen(t, oldConfig(oldStore(t)))
	page, err := s.ListMessages(context.Background(), messages.Query{Max: 10})
	require.NoError(t, err)
	require.Empty(t, page)
	promo := capping.Message{Namespace: "growth", ID: "promo"}
	released := make([]capping.Released, oldUsers)
	var users []capping.UserID
	for i := range oldUsers {
		users = append(users, capping.UserID(i*oldStep))
	}
	require.NoError(t, s.Release(context.Background(), promo.Token(), 1, users, released))
	require.Contains(t, released, capping.ReleaseDone)
	b := benchBatch("promo", users)
	b.Message, b.Token, b.Channel = promo, promo.Token(), 1
	require.NoError(t, s.Filter(context.Background(), b, make([]capping.Verdict, len(users))))
	found, err := s.MessageCounts(context.Background(), promo)
	require.NoError(t, err)
	require.Equal(t, messages.Sends{Recorded: oldUsers}, found[0].Sends)
	require.NoError(t, s.Close())
}

// TestAListOfAnEarlierVersion removes the values of the list, which earlier versions did not write.
func TestAListOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	s := openDefault(t, clock.Now).(*Store)
	delta := func(id string, asked int64) messages.Delta {
		at := capping.InstantOf(clock.Now())
		return messages.Delta{Key: messages.Key{Message: capping.Message{Namespace: "growth", ID: id}, Channel: 2},
			Answers: messages.Answers{Calls: 1, Asked: asked, First: at, Last: at}}
	}
	for i := range 10 {
		clock.Advance(10 * time.Second)
		require.NoError(t, s.AddAnswers(t.Context(), []messages.Delta{delta(fmt.Sprint("m", i), int64(1000-i))}))
	}
	list := func(order messages.Order) (ids []string) {
		page, err := s.ListMessages(t.Context(), messages.Query{Order: order, Max: 3, AtLeast: 100})
		require.NoError(t, err)
		require.NotNil(t, page.Next)
		for _, one := range page.Found {
			require.Equal(t, "growth", one.Message.Namespace)
			ids = append(ids, one.Message.ID)
		}
		return ids
	}
	check := func() {
		require.Equal(t, []string{"m9", "m8", "m7"}, list(messages.ByLast))
		require.Equal(t, []string{"m0", "m1", "m2"}, list(messages.ByAsked))
	}
	check()
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: listPrefix, UpperBound: database.After(listPrefix)})
	require.NoError(t, err)
	earlier := s.db.NewBatch()
	for ok := it.First(); ok; ok = it.Next() {
		require.NoError(t, earlier.Set(it.Key(), nil, nil))
	}
	require.NoError(t, it.Close())
	s.db.Commit(earlier)
	require.NoError(t, earlier.Close())
	check()
	require.NoError(t, s.AddAnswers(t.Context(), []messages.Delta{delta("m5", 5000)}))
	require.Equal(t, []string{"m5", "m0", "m1"}, list(messages.ByAsked))
	require.Equal(t, []string{"m5", "m9", "m8"}, list(messages.ByLast), "m5 and m9 were called at one time")
}

// TestCountsThatCannotBeRead checks that unreadable counts block no decision and return an error to readers.
func TestCountsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	log := new(testkit.Log)
	config := Config{Path: t.TempDir(), Logger: log.Logger()}
	s := reopen(t, config)
	b, other := benchBatch("broken", spread(1000)), benchBatch("whole", spread(1000))
	call := func(b *capping.Batch) {
		verdicts := make([]capping.Verdict, len(b.Users))
		require.NoError(t, s.Filter(context.Background(), b, verdicts))
		for i := range verdicts {
			require.NotEqual(t, capping.Unavailable, verdicts[i].Outcome)
		}
	}
	call(b)
	call(other)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{database.KeyMeta, 0xFF, 1},
		UpperBound: []byte{database.KeyMeta, 0xFF, 3}})
	require.NoError(t, err)
	broken := s.db.NewBatch()
	for ok := it.First(); ok; ok = it.Next() {
		if capping.Token(it.Key()[3:]) == b.Token {
			require.NoError(t, broken.Set(it.Key(), []byte("garbage"), nil))
		}
	}
	require.NoError(t, it.Close())
	s.db.Commit(broken)
	require.NoError(t, broken.Close())
	require.NoError(t, s.Close())

	s = reopen(t, config)
	b.Users, b.Groups = spread(2000), make([]uint8, 2000)
	call(b)
	call(other)
	require.NoError(t, s.Release(context.Background(), b.Token, 0, b.Users, make([]capping.Released, 2000)))
	_, err = s.MessageCounts(context.Background(), b.Message)
	require.Error(t, err)
	require.Contains(t, log.String(), "cannot be read")
	found, err := s.MessageCounts(context.Background(), other.Message)
	require.NoError(t, err)
	require.Equal(t, int64(1000), found[0].Recorded)
	require.NoError(t, s.Close())
}
