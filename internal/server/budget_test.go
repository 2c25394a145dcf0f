package server

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func holding(t *testing.T, b *budget, client string, n int64) *hold {
	t.Helper()
	h := b.open(client)
	require.True(t, h.grow(n), "%s: %d", client, n)
	return h
}

func TestAClientAloneMayUseTheWholeBudget(t *testing.T) {
	t.Parallel()
	b := newBudget(100, time.Second)
	first := holding(t, b, "greedy", 60)
	second := holding(t, b, "greedy", 40)
	require.False(t, b.open("greedy").grow(1))
	require.True(t, b.refuses("greedy", 1))
	require.False(t, b.refuses("other", 1), "who holds nothing may wait")
	first.close()
	first.close()
	require.EqualValues(t, 40, b.inUse())
	second.close()
	holding(t, b, "greedy", 200).close() // alone, beyond the bound
	require.Zero(t, b.inUse())
	require.Empty(t, b.claims)
}

// A second client waits for the first room, and meanwhile the first client gets
// nothing more.
func TestWhoHoldsLessGoesFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100, time.Second)
		first, second := holding(t, b, "greedy", 50), holding(t, b, "greedy", 50)
		entered := make(chan bool, 2)
		modest := b.open("modest")
		go func() { entered <- modest.grow(30) }()
		synctest.Wait()
		require.Empty(t, entered)
		require.True(t, b.refuses("greedy", 1))
		first.close()
		require.True(t, <-entered)
		require.False(t, b.open("greedy").grow(30), "beyond its share, half")
		third := holding(t, b, "greedy", 10) // while there is room
		modest.close()
		fourth := holding(t, b, "greedy", 30)
		go func() { entered <- modest.grow(30) }()
		require.False(t, <-entered, "nothing became free within the patience")
		for _, h := range []*hold{second, third, fourth} {
			h.close()
		}
		require.Empty(t, b.claims)
	})
}

func TestTheLargestHolderIsCutOff(t *testing.T) {
	t.Parallel()
	b := newBudget(100, time.Minute)
	cut := make(chan string, 10)
	idle := func(client string, n int64, name string) *hold {
		h := holding(t, b, client, n)
		require.True(t, h.cuttable(func() { cut <- name }))
		return h
	}
	small, large := idle("broken", 20, "small"), idle("broken", 40, "large")
	kept := idle("modest", 30, "modest")
	busy := holding(t, b, "broken", 10)
	done := make(chan bool)
	go func() {
		require.Equal(t, "large", <-cut)
		require.True(t, large.wasCut())
		require.False(t, large.grow(1), "what is cut off gets nothing more")
		large.close()
		close(done)
	}()
	third := holding(t, b, "third", 30)
	<-done
	require.Empty(t, cut)
	require.False(t, small.wasCut() || kept.wasCut())
	_, refused, cuts := b.usage()
	require.EqualValues(t, 1, refused)
	require.EqualValues(t, 1, cuts)
	for _, h := range []*hold{small, kept, busy, third} {
		h.close()
	}
	require.Empty(t, b.claims)
	require.Empty(t, b.idlers)
}

// Whatever many clients do, nothing is lost, nobody waits for ever, and who
// never asks for more than his share is never refused.
func TestBudgetsAreNeverLost(t *testing.T) {
	t.Parallel()
	const clients, bound = 5, 1000
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(bound, time.Second)
		var calls sync.WaitGroup
		for client := range clients {
			for range 1 + 30*(client%2) { // clients 1 and 3 are greedy
				calls.Go(func() { useBudget(t, b, string(rune('a'+client)), client%2 == 1) })
			}
		}
		calls.Wait()
		require.Zero(t, b.held)
		require.Empty(t, b.claims)
		require.Empty(t, b.waiting)
		require.Empty(t, b.idlers)
	})
}

func useBudget(t *testing.T, b *budget, client string, greedy bool) {
	for range 200 {
		h := b.open(client)
		ended := make(chan struct{})
		var once sync.Once
		cut := func() { once.Do(func() { close(ended) }) }
		if greedy {
			h.cuttable(cut)
		}
		for range 1 + rand.IntN(4) {
			if ok := h.grow(int64(1 + rand.IntN(50))); !ok && !greedy {
				t.Errorf("client %s was refused within its share", client)
			}
		}
		select {
		case <-ended:
		case <-time.After(time.Duration(rand.IntN(100)) * time.Millisecond):
		}
		h.close()
	}
}
