package messages_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/messages"
)

// sums is a store that adds up the deltas, unless it fails.
type sums struct {
	messages.Store
	mu      sync.Mutex
	failing bool
	added   map[messages.Key]messages.Answers
}

func (s *sums) AddAnswers(_ context.Context, deltas []messages.Delta) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing {
		return errors.New("the disk is full")
	}
	for i := range deltas {
		total := s.added[deltas[i].Key]
		total.Add(&deltas[i].Answers)
		s.added[deltas[i].Key] = total
	}
	return nil
}

func (s *sums) MessageCounts(_ context.Context, message capping.Message) ([]messages.Counts, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := messages.Key{Message: message}
	return []messages.Counts{{Key: key, Answers: s.added[key]}}, nil
}

func newSums(t testing.TB) (*messages.Counter, *sums) {
	store := &sums{added: map[messages.Key]messages.Answers{}}
	c, err := messages.NewCounter(store, nil, nil)
	require.NoError(t, err)
	return c, store
}

func told(asked int64) *messages.Answers {
	return &messages.Answers{
		Calls: 1, Asked: asked, Denied: map[string]int64{"daily": asked}, First: 5, Last: 5, Configs: []string{"v1"},
		Segments: map[string]messages.SegmentAnswers{"new": {Asked: asked, Denied: asked}},
	}
}

func add(c *messages.Counter, to messages.Key, answers *messages.Answers) {
	c.Add(to, answers.Asked, func(to *messages.Answers) { to.Add(answers) })
}

func key(id string) messages.Key { return messages.Key{Message: capping.Message{ID: id}} }

// TestCounterCountsEachAnswer checks that a reader sees all earlier answers, even with parallel calls.
func TestCounterCountsEachAnswer(t *testing.T) {
	t.Parallel()
	c, _ := newSums(t)
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for range 500 {
				add(c, key("promo"), told(2))
				if _, err := c.MessageCounts(context.Background(), capping.Message{ID: "promo"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
	found, err := c.MessageCounts(t.Context(), capping.Message{ID: "promo"})
	require.NoError(t, err)
	require.Equal(t, int64(2000), found[0].Calls)
	require.Equal(t, map[string]int64{"daily": 4000}, found[0].Denied)
	require.Equal(t, messages.SegmentAnswers{Asked: 4000, Denied: 4000}, found[0].Segments["new"])
	require.Equal(t, []string{"v1"}, found[0].Configs)
}

// TestCounterKeepsWhatCouldNotBeAdded checks that deltas which the store could not add are added later, and
// only once.
func TestCounterKeepsWhatCouldNotBeAdded(t *testing.T) {
	t.Parallel()
	c, store := newSums(t)
	store.failing = true
	add(c, key("promo"), told(3))
	require.ErrorContains(t, c.Flush(t.Context()), "the disk is full")
	add(c, key("promo"), told(4))
	require.Error(t, c.Flush(t.Context()))
	store.failing = false
	require.NoError(t, c.Flush(t.Context()))
	require.NoError(t, c.Flush(t.Context()))
	require.Equal(t, int64(7), store.added[key("promo")].Asked)
	require.Equal(t, int64(2), store.added[key("promo")].Calls)
}

// TestCounterIsBounded checks that memory is bounded, and that messages to many users are counted beside any
// number of small ones.
func TestCounterIsBounded(t *testing.T) {
	t.Parallel()
	c, store := newSums(t)
	for i := range 10_000 {
		add(c, key(fmt.Sprint("small-", i)), told(1))
	}
	add(c, key("large"), told(capping.BulkUsers))
	for i := range 30_000 {
		add(c, key(fmt.Sprint("large-", i)), told(capping.BulkUsers))
	}
	require.NoError(t, c.Flush(t.Context()))
	require.Len(t, store.added, 20_000)
	require.Contains(t, store.added, key("large"))
}

// listed is a store with two messages, one of which is activity.
type listed struct{ messages.Store }

func (listed) ListMessages(_ context.Context, q messages.Query) (page messages.Page, err error) {
	for _, k := range []messages.Key{key("promo"), {Message: messages.Activity(time.Unix(0, 0))}} {
		if q.Match(k) {
			page.Found = append(page.Found, messages.Counts{Key: k})
		}
	}
	return page, nil
}

// TestActivityIsNoMessage checks that lists leave the activity out, and that a full counter still counts it.
func TestActivityIsNoMessage(t *testing.T) {
	t.Parallel()
	c, err := messages.NewCounter(listed{}, nil, nil)
	require.NoError(t, err)
	found, err := c.ListMessages(t.Context(), messages.Query{Max: 10})
	require.NoError(t, err)
	require.Equal(t, []messages.Counts{{Key: key("promo")}}, found.Found)

	c, store := newSums(t)
	for i := range 10_000 {
		add(c, key(fmt.Sprint("small-", i)), told(1))
	}
	at := time.Date(2026, 11, 27, 17, 59, 59, 0, time.FixedZone("", 3600))
	hour := messages.Key{Message: messages.Activity(at)}
	require.Equal(t, "2026-11-27T16", hour.Message.ID)
	require.False(t, capping.IsName(hour.Message.Namespace), "no key has the namespace")
	c.Add(hour, 1, func(to *messages.Answers) { to.AddActivity(told(1), at) })
	require.NoError(t, c.Flush(t.Context()))
	require.Equal(t, messages.Answers{Calls: 1, Asked: 1, Denied: map[string]int64{"daily": 1}, First: 5, Last: 5,
		Segments: map[string]messages.SegmentAnswers{"55": {Asked: 1, Denied: 1}}}, store.added[hour])
}

// TestCounterFlushesAtTheEnd checks that the last answers are added when the counter ends.
func TestCounterFlushesAtTheEnd(t *testing.T) {
	t.Parallel()
	c, store := newSums(t)
	add(c, key("promo"), told(3))
	ctx, end := context.WithCancel(t.Context())
	end()
	c.Run(ctx)
	require.Equal(t, int64(3), store.added[key("promo")].Asked)
}

// titles is a store of titles that answers when it has the given number of reads at once.
type titles struct {
	messages.Store
	waiting sync.WaitGroup
	reads   atomic.Int64
	err     error
}

func (s *titles) Title(_ context.Context, message capping.Message) (string, error) {
	s.reads.Add(1)
	s.waiting.Done()
	s.waiting.Wait()
	return map[bool]string{true: "Title of " + message.ID}[message.ID != "m3"], s.err
}

// TestTitlesAreReadTogether checks that the reads do not wait for each other: the store answers none before all.
func TestTitlesAreReadTogether(t *testing.T) {
	t.Parallel()
	store := &titles{}
	var of []capping.Message
	want := map[capping.Message]string{}
	for i := range 30 {
		message := capping.Message{Namespace: "growth", ID: fmt.Sprint("m", i)}
		if of = append(of, message); i != 3 {
			want[message] = "Title of " + message.ID
		}
	}
	store.waiting.Add(len(of))
	c, err := messages.NewCounter(store, nil, nil)
	require.NoError(t, err)
	got, err := c.Titles(t.Context(), of)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.EqualValues(t, len(of), store.reads.Load())
}

// TestTitlesEndWithTheFirstError checks that a store that is away is not asked for every title.
func TestTitlesEndWithTheFirstError(t *testing.T) {
	t.Parallel()
	store := &titles{err: errors.New("away")}
	store.waiting.Add(64) // one more read would panic
	c, err := messages.NewCounter(store, nil, nil)
	require.NoError(t, err)
	of := make([]capping.Message, 1000)
	got, err := c.Titles(t.Context(), of)
	require.EqualError(t, err, "away")
	require.Empty(t, got)
	require.EqualValues(t, 64, store.reads.Load())
}
