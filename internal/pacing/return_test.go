package pacing

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// everySlot returns all slots of the log in order.
func everySlot(l *Log) (slots []Time) {
	for i := range l.Runs {
		for k := range l.end(i) - l.Runs[i].First {
			slots = append(slots, l.Runs[i].slot(k))
		}
	}
	for i := range l.Ahead {
		r := l.Ahead[i].run()
		for k := range l.Ahead[i].Permits {
			slots = append(slots, r.slot(k))
		}
	}
	slices.Sort(slots)
	return slots
}

// Random grants of random limits lose their slots, whatever the strands are. A log stays valid.
func TestReturnRemovesTheSlots(t *testing.T) {
	t.Parallel()
	left, all := 0, 0
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 7))
		logs, targets := []*Log{{}, {}}, make([]Target, 2)
		for i := range targets {
			for range 1 + r.IntN(2) {
				targets[i].Limits = append(targets[i].Limits, Limit{1 + r.IntN([]int{1, 5, 60}[r.IntN(3)]),
					time.Duration(1+r.IntN(40)) * []time.Duration{time.Millisecond, 7 * time.Microsecond}[r.IntN(2)]})
			}
		}
		var grants []Remembered
		for range 2 + r.IntN(8) {
			some := r.IntN(3) * min(1, len(grants))
			ask := &Ask{Targets: targets, Permits: 1 + r.IntN(200), MaxWait: time.Hour}
			of := logs
			if some < 2 {
				ask.Targets, of = targets[some:some+1], logs[some:some+1]
			}
			placed := Place(1_000_000, ask, of)
			if some != 1 {
				grants = append(grants, Remembered{Log: placed.Log})
			}
		}
		before, log := everySlot(logs[0]), logs[0]
		for range 1 + r.IntN(3) {
			of := r.IntN(len(grants))
			now := Time(1_000_000 + r.IntN(2)*r.IntN(50_000))
			slots := everySlot(&grants[of].Log)
			back := grants[of].GiveBack(now, &Ask{Targets: targets[:1]}, r.IntN(2)*r.IntN(20), logs[:1])
			gone := slots[back.Kept:]
			require.Equal(t, len(gone), back.Permits, "seed %d", seed)
			after := everySlot(log)
			require.NoError(t, log.check(), "seed %d", seed)
			decoded := &Log{Runs: log.Runs, Total: log.Total}
			require.NoError(t, decoded.DecodeAhead(log.Ahead.Append(nil)), "seed %d: %+v", seed, log)
			require.True(t, slices.Equal(log.Ahead, decoded.Ahead), "seed %d", seed)
			require.Equal(t, len(before)-back.Targets[0], len(after), "seed %d", seed)
			all += back.Permits
			if left += back.Permits - back.Targets[0]; back.Targets[0] == back.Permits {
				for _, at := range gone {
					i, found := slices.BinarySearch(before, at)
					require.True(t, found)
					before = slices.Delete(before, i, i+1)
				}
				require.Equal(t, before, after, "seed %d", seed)
			}
			before = after
		}
	}
	t.Logf("%d of %d slots stayed", left, all)
	require.Less(t, left, all/10)
}
