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
