package topology

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLedgersAgreeOnWhatHolds checks that the ledgers of all instances agree on a partition, in
// whatever order they read the copies.
func TestLedgersAgreeOnWhatHolds(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
	open := func(since, seen int, evicted int64) Breach {
		return Breach{Reason: evicting, Since: at(since), At: at(seen).UnixMilli(), Evicted: evicted}
	}
	accepted := func(b Breach, when int) Breach {
		b.Accepted, b.At = at(when), at(when).UnixMilli()
		return b
	}
	first := open(0, 0, 0)
	for name, test := range map[string]struct{ holds, other Breach }{
		"an acceptance": {accepted(first, 5), first},
		"an acceptance, though more keys were counted after it": {accepted(first, 5), open(0, 7, 300)},
		"a breach that began after the acceptance":              {open(6, 6, 1), accepted(first, 5)},
		"an acceptance of another clock":                        {accepted(first, 9), open(10, 8, 1)},
		"the larger count of an open breach":                    {open(0, 3, 300), open(0, 2, 200)},
		"the later acceptance":                                  {accepted(open(6, 6, 1), 8), accepted(first, 5)},
	} {
		holds, other := map[string]string{"p3": encode(test.holds)}, map[string]string{"p3": encode(test.other)}
		for _, copies := range [][]map[string]string{{holds, other}, {other, holds}} {
			l := newLedger(64)
			for _, copied := range copies {
				l.merge(copied)
			}
			require.Equal(t, holds, l.fields(), name)
		}
	}
}

// An old copy does not open a breach again that was accepted before the longest window.
func TestAnAcceptedBreachIsNotOpenedAgainByAnOldCopy(t *testing.T) {
	t.Parallel()
	now, retention := time.Now(), time.Minute
	breach := Breach{Reason: Evicted, Since: now.Add(-time.Hour), At: now.Add(-time.Hour).UnixMilli(), Evicted: 249}
	old := map[string]string{"p3": encode(breach)}
	breach.Accepted, breach.At = now.Add(-30*time.Minute), now.Add(-30*time.Minute).UnixMilli()
	top := &Topology{ledger: newLedger(64)}
	l := top.ledger
	l.merge(map[string]string{"p3": encode(breach)})
	for _, later := range []time.Duration{0, acceptanceKept - time.Hour} {
		l.prune(now.Add(later), retention)
		l.merge(old)
		require.Empty(t, top.BrokenPromises(), later)
		require.Empty(t, top.AcceptedPromises(retention), "no limit sees it")
	}
	require.Len(t, top.AcceptedPromises(time.Hour), 1)
	require.Len(t, top.AcceptedPromises(0), 1)
	l.prune(now.Add(acceptanceKept), retention)
	require.Empty(t, l.fields(), "nothing is kept for ever")
}

// An instance that learns of the append-only file keeps the evictions that another one has accepted.
func TestAnAppendOnlyFileReplacesNoAcceptance(t *testing.T) {
	t.Parallel()
	now := time.Now()
	run := promise{run: "r", evicted: 249}
	one, two := newLedger(64), newLedger(64)
	for _, l := range []*ledger{one, two} {
		l.read, l.old = true, true
		require.Zero(t, l.baseline("a:1", run, now), "an unknown run starts at 0")
	}
	one.accept("test", map[string]promise{"a:1": run}, now.Add(time.Second))
	run.aof = "1"
	require.Zero(t, two.baseline("a:1", run, now.Add(2*time.Second)), "it knows of no acceptance yet")
	one.merge(two.fields())
	two.merge(one.fields())
	for _, l := range []*ledger{one, two} {
		require.EqualValues(t, 249, l.baseline("a:1", run, now.Add(3*time.Second)))
		require.True(t, l.runs["r"].AppendOnly)
	}
}
