package redisstore

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/script"
	"capper/internal/messages"
	"capper/internal/testkit"
)

// blast sends and releases one campaign through two stores again and again, beside a storm, so that it meets the
// storm's fault.
type blast struct {
	key     identity
	users   []capping.UserID
	stores  []*Store
	stop    chan struct{}
	running sync.WaitGroup
}

func newBlast(base capping.UserID, stores ...*Store) *blast {
	b := &blast{
		key:    identity{capping.Message{Namespace: "growth", ID: "blast"}, 7},
		stores: stores, stop: make(chan struct{}),
	}
	for i := range capping.UserID(12_000) {
		b.users = append(b.users, base+500_000_000+3*i)
	}
	return b
}

// begin starts two callers for each store; one of them sometimes releases sends.
func (b *blast) begin(seed uint64) {
	for i := range 2 * len(b.stores) {
		rng, s := rand.New(rand.NewPCG(seed, uint64(i))), b.stores[i%len(b.stores)]
		b.running.Go(func() {
			pace := time.NewTicker(50 * time.Millisecond)
			defer pace.Stop()
			for {
				select {
				case <-b.stop:
					return
				case <-pace.C:
				}
				part := b.users[rng.IntN(len(b.users)-600):][:capping.BulkUsers+rng.IntN(500)]
				patience := time.Duration(200+rng.IntN(1000)) * time.Millisecond
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				if i >= len(b.stores) && rng.IntN(3) == 0 {
					channel := []capping.Channel{0, b.key.channel}[rng.IntN(2)]
					_ = s.Release(ctx, b.key.message.Token(), channel, part, make([]capping.Released, len(part)))
				} else {
					_ = s.Filter(ctx, b.key.batch(part), make([]capping.Verdict, len(part)))
				}
				cancel()
			}
		})
	}
}

func (b *blast) end() {
	close(b.stop)
	b.running.Wait()
}

// sends returns the counted sends and the number of sends recorded in the logs.
func (b *blast) sends(t testing.TB) (counted messages.Sends, recorded int64) {
	t.Helper()
	counted, recorded, err := b.read(t.Context())
	require.NoError(t, err)
	return counted, recorded
}

func (b *blast) read(ctx context.Context) (counted messages.Sends, recorded int64, err error) {
	s := b.stores[0]
	campaigns, err := s.MessageCounts(ctx, b.key.message)
	if err != nil {
		return counted, 0, err
	}
	for _, one := range campaigns {
		counted.Recorded += one.Recorded
		counted.Released += one.Released
		counted.AtLeast = counted.AtLeast || one.AtLeast
	}
	for first := s.keyspace.Bucket(b.users[0]); first <= s.keyspace.Bucket(b.users[len(b.users)-1]); first++ {
		partition, key, _ := s.key(capping.UserID(first * s.keyspace.BucketSize))
		fields, err := s.top.Route(partition).Client().HGetAll(ctx, key).Result()
		if err != nil {
			return counted, 0, err
		}
		for field, log := range fields {
			for _, e := range capping.Log(log).Entries() {
				if field != "" && e.Token == b.key.message.Token() {
					recorded++
				}
			}
		}
	}
	return counted, recorded, nil
}

// settle retries until all users have the send, then releases all sends: the counts must follow.
func (b *blast) settle(t testing.TB) {
	t.Helper()
	var counted messages.Sends
	var recorded int64
	require.Eventually(t, func() bool { // a call that was given up may come late
		var err error
		counted, recorded, err = b.read(context.Background())
		return err == nil && (counted.AtLeast || counted.Recorded-counted.Released == recorded)
	}, testkit.Patience, 100*time.Millisecond, "counted are not those of the logs")
	t.Logf("counted %+v, in the logs are %d", counted, recorded)
	for part := range slices.Chunk(b.users, 3000) {
		verdicts := make([]capping.Verdict, len(part))
		require.NoError(t, b.stores[0].Filter(background(t, testkit.Patience), b.key.batch(part), verdicts))
	}
	counted, recorded = b.sends(t)
	require.EqualValues(t, len(b.users), recorded)
	b.exact(t, counted, recorded)
	released := make([]capping.Released, len(b.users))
	require.NoError(t, b.stores[1].Release(background(t, testkit.Patience), b.key.message.Token(), 0, b.users,
		released))
	counted, recorded = b.sends(t)
	require.Zero(t, recorded)
	b.exact(t, counted, recorded)
}

// exact requires that the counts equal the logs, unless they are marked as lower bounds.
func (b *blast) exact(t testing.TB, counted messages.Sends, recorded int64) {
	t.Helper()
	if !counted.AtLeast {
		require.Equal(t, recorded, counted.Recorded-counted.Released)
	}
}

// The check finds counts that a script has counted wrongly.
func TestWrongCountsAreFound(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][2]string{
		"everybody who was asked":      {"new = new + m - 2", "new = new + 2 * count"},
		"the last bucket alone":        {"new = new + m - 2", "new = m - 2"},
		"nobody":                       {"new = new + m - 2", "new = 0"},
		"calls":                        {"new = new / 2", "new = math.min(new, 1)"},
		"the first call of the user's": {"if new > 0 or", "if"},
		"into the hours":               {"(least + 6 - untl) *", "1 + (least + 6 - untl) *"},
		"right":                        {"new = new / 2", "new = 0.5 * new"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShared(t, nil)
			require.Contains(t, s.scripts.Filter.Source, change[0])
			changed := script.New(strings.ReplaceAll(s.scripts.Filter.Source, change[0], change[1]))
			for _, n := range s.top.Nodes() {
				require.NoError(t, admin(t, n.Addr()).ScriptLoad(t.Context(), changed.Source).Err())
			}
			s.scripts.Filter = changed
			b := newBlast(0, s)
			filter(t, s, b.key.batch(b.users[:500]))
			filter(t, s, b.key.batch(b.users[:3000]))
			filter(t, s, b.key.batch(b.users[:3000]))
			counted, recorded := b.sends(t)
			require.EqualValues(t, 3000, recorded)
			require.Equal(t, name == "right", counted.Recorded == recorded, "counted %+v", counted)
		})
	}
}

// answersOf returns the answers of one call about the message.
func answersOf(message capping.Message, asked int64) messages.Delta {
	at := capping.InstantOf(time.Now())
	return messages.Delta{
		Key: messages.Key{Message: message, Channel: 1}, Answers: messages.Answers{Calls: 1, Asked: asked, First: at,
			Last: at},
	}
}

// Configurations bring ever new names, so the number of counted names per message is limited.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	message := capping.Message{ID: "m"}
	for i := range 60 {
		delta := answersOf(message, 100)
		delta.Denied = map[string]int64{"daily": 1}
		for j := range 100 {
			delta.Denied[strings.Repeat("x", i+1)+string(rune('a'+j%26))+strings.Repeat("y", j/26)] = 1
		}
		delta.Configs = []string{strings.Repeat("v", i+1), strings.Repeat("w", i+1)}
		require.NoError(t, s.AddAnswers(t.Context(), []messages.Delta{delta}))
	}
	found, err := s.MessageCounts(t.Context(), message)
	require.NoError(t, err)
	require.Less(t, len(found[0].Denied), 4300)
	require.Equal(t, int64(60), found[0].Denied["daily"], "what is known goes on")
	require.Equal(t, int64(6000), found[0].Asked)
	require.Len(t, found[0].Configs, 100)
	require.Equal(t, "v", found[0].Configs[0])
}

// TestTitlesExpire checks that a title is in the answers about its message and expires with them, also before the first
// call. Earlier versions read the answers without the title.
func TestTitlesExpire(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	message := capping.Message{ID: "titled"}
	key := s.counts.answerKeys(message.Token(), 0).Answers
	server := admin(t, s.top.Route(s.messagePartition(message.Token())).Addr())
	ttl := func() time.Duration {
		t.Helper()
		left, err := server.PTTL(t.Context(), key).Result()
		require.NoError(t, err)
		return left
	}
	require.NoError(t, s.SetTitle(t.Context(), message, ""))
	require.Negative(t, ttl(), "there is no key")
	for _, title := range []string{"a", "b", ""} {
		require.NoError(t, s.SetTitle(t.Context(), message, title))
		require.Greater(t, ttl(), s.counts.keep()-time.Hour)
	}
	require.NoError(t, s.SetTitle(t.Context(), message, "Spring"))
	require.NoError(t, s.AddAnswers(t.Context(), []messages.Delta{answersOf(message, 100)}))
	require.NoError(t, server.PExpire(t.Context(), key, time.Hour).Err())
	require.NoError(t, s.SetTitle(t.Context(), message, "Autumn"))
	require.LessOrEqual(t, ttl(), time.Hour, "a title does not keep the counts")
	stored, err := server.HGetAll(t.Context(), key).Result()
	require.NoError(t, err)
	require.Equal(t, "Autumn", stored["t"])
	fields := []string{}
	for name, value := range stored {
		fields = append(fields, name, value)
	}
	answers, err := script.DecodeAnswers(fields)
	require.NoError(t, err)
	require.Len(t, answers, 1)
}

// An earlier version kept no index by asked users. The first list of a process that needs the index fills it.
func TestAListOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	keys := map[string]int{}
	for i := range 150 {
		delta := answersOf(capping.Message{ID: "m" + strconv.Itoa(i)}, int64(100+i))
		require.NoError(t, s.AddAnswers(t.Context(), []messages.Delta{delta}))
		p := s.messagePartition(delta.Message.Token())
		keys[script.SizesKey(s.prefixes[p], script.Period(delta.Last))] = p
	}
	for key, p := range keys {
		removed, err := s.top.Route(p).Client().Del(t.Context(), key).Result()
		require.NoError(t, err)
		require.Equal(t, int64(1), removed)
	}
	for _, order := range []messages.Order{messages.ByAsked, messages.ByLast} {
		page, err := s.ListMessages(t.Context(), messages.Query{Order: order, Max: 10, AtLeast: 200})
		require.NoError(t, err)
		require.Len(t, page.Found, 10)
		require.NotNil(t, page.Next)
		if order == messages.ByAsked {
			require.Equal(t, "m149", page.Found[0].Message.ID)
		}
	}
	for key, p := range keys {
		ttl, err := admin(t, s.top.Route(p).Addr()).PTTL(t.Context(), key).Result()
		require.NoError(t, err)
		require.Greater(t, ttl, script.PeriodLength)
	}
}
