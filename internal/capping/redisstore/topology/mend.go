package topology

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// mendBroken is for partitions whose open breach (such as evicted keys) explains that sentinel keys and marks are gone:
// it creates these again. mendBroken leaves the other records of the partitions unchanged. If the loss of a partition
// has another cause, the partition stays in quarantine (no decisions until an operator accepts the loss). The argument
// "found" of mendBroken has, for the address of each master, what INFO says about evictions and the append-only file.
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

// Broken reports whether the partition has an open breach, that is, a possible loss of logs that no operator has
// accepted.
func (t *Topology) Broken(partition int) bool { return t.openBreaches()[partition] != nil }

// AllBroken returns the partitions that have an open breach, that is, a possible loss of logs that no operator has
// accepted.
func (t *Topology) AllBroken() []int { return slices.Sorted(maps.Keys(t.openBreaches())) }

// openBreaches returns the open breaches of each partition. An open breach is a possible loss of logs that no operator
// has accepted.
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

// explained returns those partitions whose sentinel key or mark is gone because of an open breach (possible loss of
// logs). The argument "now" of the method explained has what INFO says at present about the node: its evictions and its
// append-only file.
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
	// If a server was emptied, no partition on it keeps its sentinel key. No partition keeps its sentinel key either on
	// a server that dropped all transactions while it loaded its append-only file.
	if whole && (!withoutFile && evicted < int64(len(signs)) || n.flushed(ctx)) {
		return nil
	}
	return lost
}

// explains reports whether the breach can be the cause of an outcome of the check of a sentinel key (a marker key that
// reveals lost data). The argument "evicted" of the method explains says that the server has evicted keys, whatever the
// cause of the breach (possible loss of logs) is.
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

// flushed reports whether a client may have emptied the server with FLUSHALL or FLUSHDB since the server started.
func (n *Node) flushed(ctx context.Context) bool {
	stats, err := n.client.Info(ctx, "commandstats").Result()
	return err != nil || !strings.Contains(stats, "cmdstat_info:") ||
		strings.Contains(stats, "cmdstat_flushall:") || strings.Contains(stats, "cmdstat_flushdb:")
}

// evictedSince returns how many keys the server has evicted since it started, or since an operator last accepted a
// loss.
func (l *ledger) evictedSince(p promise) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.evicted < 0 {
		return 0
	}
	return max(0, p.evicted-l.runs[p.run].Evicted)
}
