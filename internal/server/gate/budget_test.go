package gate

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func holding(t *testing.T, b *Budget, client string, n int64) *Hold {
	t.Helper()
	h := b.Open(client)
	require.True(t, h.Grow(n), "%s: %d", client, n)
	return h
}

func TestAClientAloneMayUseTheWholeBudget(t *testing.T) {
	t.Parallel()
	b := newBudget(100, time.Second)
	first := holding(t, b, "greedy", 60)
	second := holding(t, b, "greedy", 40)
	require.False(t, b.Open("greedy").Grow(1))
	require.True(t, b.CountRefusal("greedy", 1))
	require.False(t, b.CountRefusal("other", 1), "who holds nothing may wait")
	first.Close()
	first.Close()
	require.EqualValues(t, 40, b.InUse())
	second.Close()
	holding(t, b, "greedy", 200).Close() // alone, beyond the bound
	require.Zero(t, b.InUse())
	require.Empty(t, b.claims)
}

// TestWhoHoldsLessGoesFirst checks that a second client gets the first free part of the budget, and that the first
// client gets nothing more until then.
func TestWhoHoldsLessGoesFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100, time.Second)
		first, second := holding(t, b, "greedy", 50), holding(t, b, "greedy", 50)
		entered := make(chan bool, 2)
		modest := b.Open("modest")
		go func() { entered <- modest.Grow(30) }()
		synctest.Wait()
		require.Empty(t, entered)
		require.True(t, b.CountRefusal("greedy", 1))
		first.Close()
		require.True(t, <-entered)
		asked := time.Now()
		require.False(t, b.Open("greedy").Grow(30), "beyond its share, half")
		require.Zero(t, time.Since(asked), "a client beyond its share does not queue beside others")
		third := holding(t, b, "greedy", 10) // while there is room
		modest.Close()
		fourth := holding(t, b, "greedy", 30)
		go func() { entered <- modest.Grow(30) }()
		require.False(t, <-entered, "nothing became free within the patience")
		for _, h := range []*Hold{second, third, fourth} {
			h.Close()
		}
		require.Empty(t, b.claims)
	})
}

func TestTheLargestHolderIsCutOff(t *testing.T) {
	t.Parallel()
	b := newBudget(100, time.Minute)
	cut := make(chan string, 10)
	idle := func(client string, n int64, name string) *Hold {
		h := holding(t, b, client, n)
		require.True(t, h.AllowCut(func() { cut <- name }))
		return h
	}
	small, large := idle("broken", 20, "small"), idle("broken", 40, "large")
	kept := idle("modest", 30, "modest")
	busy := holding(t, b, "broken", 10)
	done := make(chan bool)
	go func() {
		require.Equal(t, "large", <-cut)
		require.True(t, large.WasCut())
		require.False(t, large.Grow(1), "what is cut off gets nothing more")
		large.Close()
		close(done)
	}()
	third := holding(t, b, "third", 30)
	<-done
	require.Empty(t, cut)
	require.False(t, small.WasCut() || kept.WasCut())
	_, refused, cuts := b.Usage()
	require.EqualValues(t, 1, refused)
	require.EqualValues(t, 1, cuts)
	for _, h := range []*Hold{small, kept, busy, third} {
		h.Close()
	}
	require.Empty(t, b.claims)
	require.Empty(t, b.idlers)
}

// TestBudgetsAreNeverLost checks many random clients: no part of a budget is lost, nobody waits forever, and a client
// within its share is never refused.
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

func useBudget(t *testing.T, b *Budget, client string, greedy bool) {
	for range 200 {
		h := b.Open(client)
		ended := make(chan struct{})
		var once sync.Once
		cut := func() { once.Do(func() { close(ended) }) }
		if greedy {
			h.AllowCut(cut)
		}
		for range 1 + rand.IntN(4) {
			if ok := h.Grow(int64(1 + rand.IntN(50))); !ok && !greedy {
				t.Errorf("client %s was refused within its share", client)
			}
		}
		select {
		case <-ended:
		case <-time.After(time.Duration(rand.IntN(100)) * time.Millisecond):
		}
		h.Close()
	}
}
