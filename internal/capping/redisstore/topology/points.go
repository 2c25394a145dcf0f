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

// point is how far a partition has progressed in time, as its mark (a hash in Redis) shows it. The field "anew" is the
// time when the partition was created, or continued with incomplete records. The field "at" is the latest time since
// then. The times anew and at are in milliseconds since 1970.
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

// settleAfter is the age of a point from which its loss proves that the server has lost records. A killed Redis server
// may lose its last second of writes, or three seconds with a slow disk (appendfsync everysec).
const settleAfter = 4 * time.Second

// points holds the latest known time of each partition, so that the store notices a restart of a server with older
// data. A points value is safe for concurrent use.
type points struct {
	mu         sync.Mutex
	partitions []progress
}

// progress holds the latest known times of one partition, by which a restart with older data is noticed.
type progress struct {
	settled point     // if the partition shows an earlier point, it has lost records
	latest  point     // the point that the latest check found
	since   time.Time // time of the latest check; zero: no check yet
	on      belief    // the server, and its run, of the latest check
}

// settled returns a point in time of the partition. A server with complete records never shows an earlier point.
func (h *points) settled(partition int) point {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.partitions[partition].settled
}

// told adopts a later settled point of the partition that another instance has stored in Redis.
func (h *points) told(partition int, p point) {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := &h.partitions[partition]
	one.settled = later(one.settled, p)
}

// reached stores the point (latest time of a partition) that a check of the partition's sentinel key and mark has
// found. The check began at the time began, in one run of a Redis server. As many replicas as a send needs have
// confirmed the recorded point. If the server has restarted since the previous check, it may have lost the previous
// point, which then does not become the settled point.
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

// keepersOf returns, for each partition, another partition, whose mark (a Redis hash) also stores the point (latest
// time) of the first partition. The hash slots of the two partitions are about half of all slots apart, and therefore
// usually on different masters. If keepersOf returns -1 for a partition, the store has no other partition, and no mark
// stores the point.
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

// keptBy returns, for each partition, the other partitions whose points (latest times) are also stored in its mark (a
// Redis hash).
func keptBy(keepers []int) [][]int {
	kept := make([][]int, len(keepers))
	for p, q := range keepers {
		if q >= 0 {
			kept[q] = append(kept[q], p)
		}
	}
	return kept
}

// recall reads from Redis the points that the marks of partitions store for other partitions. recall must run before
// the first check of sentinel keys, because that check changes marks. If every instance restarts, only the points that
// marks store are still known. If a server does not answer recall, the first check of sentinel keys that reaches the
// server reads its points.
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
