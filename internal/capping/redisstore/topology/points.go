package topology

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// point is how far the records of a partition have come, by its mark: when somebody
// began anew, and the latest time since, in milliseconds since 1970.
type point struct{ anew, at int64 }

func (p point) before(q point) bool {
	return cmp.Or(cmp.Compare(p.anew, q.anew), cmp.Compare(p.at, q.at)) < 0
}

func later(p, q point) point {
	if p.before(q) {
		return q
	}
	return p
}

// settleAfter is for how long a point has to have been there until its loss is the
// loss of records. A server that is killed may forget its last second, or three when its
// disk is slow (appendfsync everysec).
const settleAfter = 4 * time.Second

// points are how far partitions are known to have come. They are safe for concurrent use.
type points struct {
	mu         sync.Mutex
	partitions []progress
}

// progress of one partition.
type progress struct {
	settled point     // it never goes back behind it
	latest  point     // as of the look at since
	since   time.Time // zero: none yet
	on      belief    // the server of that look, and its run
}

// settled is the point behind which the partition never goes back.
func (h *points) settled(partition int) point {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.partitions[partition].settled
}

// told takes a settled point that another instance has kept.
func (h *points) told(partition int, p point) {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := &h.partitions[partition]
	one.settled = later(one.settled, p)
}

// reached takes the point of a look that began at the time on a run of a server, and that as many replicas have as
// a send needs. A server that started since the look before may have lost that one's point, so that it settles nothing.
func (h *points) reached(partition int, p point, on belief, began time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := &h.partitions[partition]
	switch {
	case one.since.IsZero() || on != one.on || p.before(one.latest) || p.anew != one.latest.anew:
		one.settled = later(one.settled, point{p.anew, 0})
	case began.Sub(one.since) < settleAfter:
		return
	default:
		one.settled = later(one.settled, one.latest)
	}
	one.latest, one.since, one.on = p, time.Now(), on
}

// keepersOf says for each partition which other one's mark keeps its point: one whose slot
// is half of all slots away, so that another master has it. -1: there is no other.
func keepersOf(partitions []Partition) []int {
	const slots = 16384
	keepers := make([]int, len(partitions))
	for p := range partitions {
		best, least := -1, slots
		for q := range partitions {
			off := (partitions[p].Slot + slots/2 - partitions[q].Slot + slots) % slots
			if off = min(off, slots-off); q != p && off < least {
				best, least = q, off
			}
		}
		keepers[p] = best
	}
	return keepers
}

// keptBy are the partitions whose points the mark of each one keeps.
func keptBy(keepers []int) [][]int {
	kept := make([][]int, len(keepers))
	for p, q := range keepers {
		if q >= 0 {
			kept[q] = append(kept[q], p)
		}
	}
	return kept
}

// recall asks the marks for the points that they keep of other partitions, before the first
// look renews anything: it is all that outlives a restart of every instance. A
// server that does not answer tells its points at the first look that reaches it.
func (t *Topology) recall(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, t.config.LongestAttempt())
	defer cancel()
	var asked sync.WaitGroup
	for n, list := range t.routed() {
		asked.Go(func() { n.recall(ctx, list) })
	}
	asked.Wait()
}

func (n *Node) recall(ctx context.Context, partitions []int) {
	t, pipe := n.top, n.client.Pipeline()
	replies := map[int]*redis.StringCmd{}
	for _, q := range partitions {
		for _, p := range t.kept[q] {
			replies[p] = pipe.HGet(ctx, t.config.Partitions[q].markKey(), strconv.Itoa(p))
		}
	}
	if len(replies) == 0 {
		return
	}
	_, _ = pipe.Exec(ctx) // every command holds its own error
	for p, reply := range replies {
		var told point
		if _, err := fmt.Sscanf(reply.Val(), "%d %d", &told.anew, &told.at); err == nil {
			t.points.told(p, told)
		}
	}
}
