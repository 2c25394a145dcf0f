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

// A point says how far a partition has progressed in time, according to its mark (a hash in Redis). The field "anew" is
// the time at which the partition was created, or at which it continued with incomplete records. The field "at" is the
// latest time since then. The fields "anew" and "at" are times in milliseconds since 1970.
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

// settleAfter is the age from which on the loss of a point (latest time of a partition) proves that the server has lost
// records. If a Redis server is killed, it may lose the writes of its last second, or of three seconds with a slow disk
// (appendfsync everysec).
const settleAfter = 4 * time.Second

// points holds the latest known time of each partition. If a partition on a server is behind its latest known time, the
// store notices that the server has restarted with older data. A points value is safe for concurrent use.
type points struct {
	mu         sync.Mutex
	partitions []progress
}

// progress holds the latest known times of one partition, which show whether a server has restarted with older data.
type progress struct {
	settled point     // if the partition shows an earlier point, it has lost records
	latest  point     // the point that the latest check found
	since   time.Time // time of the latest check; zero: no check yet
	on      belief    // the server, and its run, of the latest check
}

// settled returns a point in time of the partition. As long as a server has complete records, it never shows an earlier
// point of the partition.
func (h *points) settled(partition int) point {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.partitions[partition].settled
}

// told takes over a later settled point of the partition, which another instance has stored in Redis.
func (h *points) told(partition int, p point) {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := &h.partitions[partition]
	one.settled = later(one.settled, p)
}

// reached stores a point (latest time of a partition) that a check of the partition's sentinel key and mark has found.
// The argument "began" of the method reached is the time of this check. The argument "on" of the method reached says in
// which run of a Redis server the check was made. As many replicas as must confirm a send have confirmed the point that
// the method reached stores. If the server has restarted since the check before, the point of that check may be lost,
// and does not become the settled point.
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

// keepersOf returns, for each partition, a keeper: another partition whose mark (a Redis hash) also stores the point
// (latest time) of the first partition. The hash slots of the two partitions are far apart, about half of all slots,
// and so usually on different masters. If there is no other partition, keepersOf returns -1, and no other mark stores
// the point.
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

// keptBy is the inverse of keepersOf: it returns, for each partition, the other partitions whose points (latest times)
// its mark also stores.
func keptBy(keepers []int) [][]int {
	kept := make([][]int, len(keepers))
	for p, q := range keepers {
		if q >= 0 {
			kept[q] = append(kept[q], p)
		}
	}
	return kept
}

// recall reads points (latest times) of partitions from Redis, where the marks of other partitions store them. recall
// must run before the first check of sentinel keys (marker keys that reveal lost data), because that check changes
// marks. When every instance has restarted, only the points in the marks of other partitions are still known. If a
// server does not answer recall, the points (latest times) on this server are read later, by the first check of
// sentinel keys that reaches the server.
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
