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

// A point is the latest time that a partition has reached, according to the partition's mark (a hash in Redis). The
// field "anew" is the time at which the partition was created, or was started again with its remaining records after a
// loss. The field "at" is the latest time of the mark. Both times of a point (a partition's progress in time) are in
// milliseconds since 1970.
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

// settleAfter is the age at which a point (latest time of a partition) becomes settled. If a server lacks a settled
// point (a time that the partition has certainly reached), the server has lost records. A killed Redis server may lose
// the writes of its last second, or of three seconds with a slow disk (appendfsync everysec).
const settleAfter = 4 * time.Second

// The type "points" holds the latest known time of each partition. If the time of a partition on a server is earlier
// than the latest known time, the server has restarted with older data. A points value is safe for concurrent use.
type points struct {
	mu         sync.Mutex
	partitions []progress
}

// The type "progress" holds the latest known times of one partition.
type progress struct {
	settled point     // a partition with an earlier point than this has lost records
	latest  point     // the point that the latest check found
	since   time.Time // time of the latest check; zero: no check yet
	on      belief    // the server and the run of the server at the latest check
}

// The method "settled" returns the settled point of the partition (a time that the partition has certainly reached). If
// a server has an earlier point of the partition, the server has lost records.
func (h *points) settled(partition int) point {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.partitions[partition].settled
}

// The method "told" stores the point p (latest time of the partition) from Redis as the settled point, if p is later
// than the settled point in memory.
func (h *points) told(partition int, p point) {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := &h.partitions[partition]
	one.settled = later(one.settled, p)
}

// The method "reached" stores a point (latest time of a partition) from a check of the partition's sentinel key and
// mark. The argument "began" of the method "reached" is the time of the check. The argument "on" of the method
// "reached" is the run of the Redis server in which the check was made. The caller of the method "reached" must make
// sure that enough replicas have confirmed the point. If the server has restarted since the previous check, it may have
// lost the point (latest time) of that check, so this point does not become settled.
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

// keepersOf returns the keeper of each partition: another partition whose mark (a Redis hash) also stores the
// partition's point (latest time). The hash slots of a partition and of its keeper (a partition that also stores its
// point) are far apart, and therefore usually on different masters. If only one partition exists, its keeper is -1, and
// no other mark stores the partition's point.
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

// keptBy is the inverse of keepersOf: the result has, for each partition, the other partitions whose points (latest
// times) are also in the partition's mark.
func keptBy(keepers []int) [][]int {
	kept := make([][]int, len(keepers))
	for p, q := range keepers {
		if q >= 0 {
			kept[q] = append(kept[q], p)
		}
	}
	return kept
}

// The method "recall" reads the points (latest times) of partitions from the marks of other partitions in Redis. If all
// instances of capper have restarted, only these marks still hold the points. The method "recall" must run before the
// first check of sentinel keys (marker keys that reveal lost data), because that check changes marks. If a server does
// not answer, the first check of sentinel keys on this server reads the points.
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
