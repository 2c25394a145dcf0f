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

// point is the progress of a partition, as its mark shows it. anew is the time when the partition was created, or
// started again with incomplete records; at is the latest time since then. The times anew and at are in milliseconds
// since 1970.
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

// settleAfter is the age of a point from which the loss of the point proves a loss of records. A killed Redis server
// may lose its last second, or three seconds with a slow disk (appendfsync everysec).
const settleAfter = 4 * time.Second

// points is the known progress of all partitions. A points value is safe for concurrent use.
type points struct {
	mu         sync.Mutex
	partitions []progress
}

// progress is the known progress of one partition.
type progress struct {
	settled point     // a partition behind this point has lost records
	latest  point     // the point at the latest check
	since   time.Time // time of the latest check; zero: no check yet
	on      belief    // the server and its run at the latest check
}

// settled returns the point behind which a partition with complete records never falls.
func (h *points) settled(partition int) point {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.partitions[partition].settled
}

// told raises the settled point to a point that another instance has stored.
func (h *points) told(partition int, p point) {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := &h.partitions[partition]
	one.settled = later(one.settled, p)
}

// reached records the point that a sentinel check has found. The check began at the given time, on one run of a server.
// Enough replicas for a send have confirmed the recorded point. If the server has restarted since the previous check,
// the previous point may be lost and does not become the settled point.
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

// keepersOf returns for each partition another partition, whose mark stores the point of the first partition. The hash
// slots of the two partitions are half of all slots apart, and therefore on different masters. The result -1 means that
// there is no other partition.
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

// keptBy returns for each partition the other partitions whose points its mark stores.
func keptBy(keepers []int) [][]int {
	kept := make([][]int, len(keepers))
	for p, q := range keepers {
		if q >= 0 {
			kept[q] = append(kept[q], p)
		}
	}
	return kept
}

// recall reads the points that marks store for other partitions. recall must run before the first sentinel check
// changes a mark. Only the points in marks survive a restart of every instance. If a server does not answer, the first
// sentinel check that reaches the server reads its points.
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
	_, _ = pipe.Exec(ctx) // each command holds its own error
	for p, reply := range replies {
		var told point
		if _, err := fmt.Sscanf(reply.Val(), "%d %d", &told.anew, &told.at); err == nil {
			t.points.told(p, told)
		}
	}
}
