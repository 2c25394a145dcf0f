package topology

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// mendBroken creates lost sentinel keys and marks of partitions again if an open breach (such as evicted keys) explains
// the loss. The method mendBroken leaves the other records of the partitions unchanged. If the loss has another cause,
// the partition stays in quarantine (no decisions until an operator accepts the loss). For the address of each master,
// the argument "found" of mendBroken holds the values that INFO shows about evictions and the append-only file.
func (t *Topology) mendBroken(ctx context.Context, found map[string]promise) error {
	ctx, cancel := context.WithTimeout(ctx, t.config.LongestAttempt())
	defer cancel()
	open := t.openBreaches()
	for n, partitions := range t.routed() {
		if !slices.ContainsFunc(partitions, func(p int) bool { return open[p] != nil }) {
			continue
		}
		if err := n.mendBroken(ctx, partitions, open, found[n.addr]); err != nil {
			return fmt.Errorf("node %s: %w", n.addr, err)
		}
	}
	return nil
}

// The method Broken reports whether the partition has an open breach: a possible loss of logs that no operator has
// accepted.
func (t *Topology) Broken(partition int) bool { return t.openBreaches()[partition] != nil }

// AllBroken returns the partitions with an open breach: a possible loss of logs that no operator has accepted.
func (t *Topology) AllBroken() []int { return slices.Sorted(maps.Keys(t.openBreaches())) }

// openBreaches returns the open breach (possible loss of logs that no operator has accepted) of each partition that has
// one.
func (t *Topology) openBreaches() map[int]*Breach {
	t.ledger.mu.Lock()
	defer t.ledger.mu.Unlock()
	open := maps.Clone(t.ledger.breaches)
	maps.DeleteFunc(open, func(_ int, b *Breach) bool { return !b.Open() })
	return open
}

func (n *Node) mendBroken(ctx context.Context, partitions []int, open map[int]*Breach, now promise) error {
	look := *n.top.look.Load()
	signs := n.lookAtSigns(ctx, partitions, &look)
	if len(signs) < len(partitions) {
		return errUnlooked
	}
	look.Accept = n.explained(ctx, signs, open, now)
	if len(look.Accept) == 0 {
		return nil
	}
	for _, s := range n.lookAtSigns(ctx, partitions, &look) { // all partitions: this check also sets the belief
		if s.good() {
			delete(look.Accept, s.partition)
		}
	}
	if len(look.Accept) > 0 {
		return errUnlooked
	}
	return nil
}

var errUnlooked = fmt.Errorf("the sentinel keys (keys that reveal lost data) of some partitions could not be read")

// The method "explained" returns the partitions whose sentinel key or mark is gone because of an open breach (possible
// loss of logs). The argument "now" of the method "explained" holds the values that INFO of the node now shows about
// evictions and the append-only file.
func (n *Node) explained(ctx context.Context, signs []sign, open map[int]*Breach, now promise) map[int]bool {
	lost, whole, withoutFile := map[int]bool{}, true, false
	evicted := n.top.ledger.evictedSince(now)
	for _, s := range signs {
		if b := open[s.partition]; b != nil {
			evicted, withoutFile = max(evicted, b.Evicted), withoutFile || b.Reason == appendOnly
		}
	}
	for _, s := range signs {
		whole = whole && (s.outcome == "gone" || s.outcome == "unmarked")
		if b := open[s.partition]; b != nil && b.explains(s.outcome, evicted > 0) {
			lost[s.partition] = true
		}
	}
	// On a server that was emptied, all partitions have lost the sentinel key. If a server dropped all transactions
	// while it loaded its append-only file, all its partitions have lost the sentinel key or the mark.
	if whole && (!withoutFile && evicted < int64(len(signs)) || n.flushed(ctx)) {
		return nil
	}
	return lost
}

// The method "explains" reports whether the breach (possible loss of logs) can explain the result of a check of a
// sentinel key. The argument "evicted" of the method "explains" is true if the server has evicted keys, even if the
// breach has another cause.
func (b *Breach) explains(outcome string, evicted bool) bool {
	switch outcome {
	case "gone":
		return true
	case "unmarked":
		return b.Reason != appendOnly || evicted
	case "older":
		return b.Reason == appendOnly
	}
	return false
}

// The method "flushed" reports whether a client may have emptied the server with FLUSHALL or FLUSHDB since the server
// started.
func (n *Node) flushed(ctx context.Context) bool {
	stats, err := n.client.Info(ctx, "commandstats").Result()
	return err != nil || !strings.Contains(stats, "cmdstat_info:") ||
		strings.Contains(stats, "cmdstat_flushall:") || strings.Contains(stats, "cmdstat_flushdb:")
}

// evictedSince returns the number of keys that the server has evicted since its start or since the last acceptance of a
// loss by an operator.
func (l *ledger) evictedSince(p promise) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.evicted < 0 {
		return 0
	}
	return max(0, p.evicted-l.runs[p.run].Evicted)
}
