package topology

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// importing is a hash slot that a cluster node takes over from another node, key by key. During the move of a hash
// slot, the old node redirects callers for keys that have moved. If the old node fails during the move, its promoted
// replica does not know of the move, because Redis does not replicate this state. The promoted replica then treats
// users with moved keys as users without sends. A hash slot whose move was interrupted in this way is called torn.
type importing struct {
	slot int
	from string // id of the node that had the slot
}

// move is the move of a hash slot from one node to another. The fields "from" and "to" are ids of nodes in the cluster.
type move struct{ from, to string }

// Moving reports whether the partition's hash slot was moving at the last refresh.
func (t *Topology) Moving(partition int) bool { return t.moves[partition].Load() != nil }

// tornBar returns the quarantine of a partition on a torn hash slot (some of whose keys are on another node), or nil. A
// hash slot is torn if its owner is neither of the two nodes between which the slot was moving, because these have the
// keys.
func (t *Topology) tornBar(partition int) *Bar {
	moving := t.moves[partition].Load()
	if moving == nil {
		return nil
	}
	n := t.Route(partition)
	if n == nil {
		return nil
	}
	if id := n.name(); id == "" || id == moving.from || id == moving.to {
		return nil
	}
	return barTorn
}

var barTorn = &Bar{Reason: Torn, what: "a hash slot is split: a master failed while the slot was being moved, and " +
	"its successor does not know the moved keys",
	way: "the users are unavailable until redis-cli --cluster fix has repaired the slot"}

// gossip is what a node reports in CLUSTER NODES about other nodes and moving hash slots.
type gossip struct {
	self    string
	imports []importing
	idle    []string // addresses of masters without slots, which may be importing their first slot
	known   []string // ids of all nodes
}

func gossipOf(text, asked string) (g gossip) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 8 {
			continue
		}
		g.known = append(g.known, f[0])
		flags := strings.Split(f[2], ",")
		switch {
		case slices.Contains(flags, "myself"):
			g.self, g.imports = f[0], importsOf(f[8:])
		case len(f) == 8 && slices.Contains(flags, "master") && f[7] == "connected" && !slices.Contains(flags, "fail"):
			if addr := listedAddr(f[1], asked); addr != "" {
				g.idle = append(g.idle, addr)
			}
		}
	}
	return g
}

// importsOf parses the slots of a node in CLUSTER NODES: "0-99" or "7" for owned slots, and "[93-<-id]" for a slot that
// the node is importing.
func importsOf(slots []string) (imports []importing) {
	for _, text := range slots {
		number, from, found := strings.Cut(strings.Trim(text, "[]"), "-<-")
		if slot, err := strconv.Atoi(number); found && err == nil {
			imports = append(imports, importing{slot, from})
		}
	}
	return imports
}

// noteGossip parses and stores the node's reply to CLUSTER NODES.
func (n *Node) noteGossip(text string) {
	g := gossipOf(text, n.addr)
	n.id.Store(&g.self)
	n.told.Store(&g)
}

// followMoves finds out which hash slots are moving, from the reports of all masters and of nodes without slots. If a
// node does not answer, its last report of moving slots counts while other nodes still list the node.
func (t *Topology) followMoves(ctx context.Context, masters []*Node) {
	if !t.cluster {
		return
	}
	t.askIdle(ctx, masters)
	known := map[string]bool{}
	for _, n := range masters {
		if g := n.told.Load(); g != nil {
			for _, id := range g.known {
				known[id] = true
			}
		}
	}
	moves := map[int]*move{}
	for _, n := range t.Nodes() {
		if g := n.told.Load(); g != nil && known[g.self] {
			for _, i := range g.imports {
				moves[i.slot] = &move{i.from, g.self}
			}
		}
	}
	for p := range t.moves {
		t.moves[p].Store(moves[t.config.Partitions[p].Slot])
	}
}

// askIdle reads CLUSTER NODES from those masters without slots that other nodes list.
func (t *Topology) askIdle(ctx context.Context, masters []*Node) {
	idle := map[string]bool{}
	for _, n := range masters {
		if g := n.told.Load(); g != nil {
			for _, addr := range g.idle {
				idle[addr] = true
			}
		}
	}
	for _, n := range t.Nodes() { // a node that became a replica no longer imports slots
		if g := n.told.Load(); g != nil && len(g.imports) > 0 && !slices.Contains(masters, n) {
			idle[n.addr] = true
		}
	}
	var asked sync.WaitGroup
	for addr := range idle {
		n := t.node(addr)
		asked.Go(func() {
			if text, err := n.client.ClusterNodes(ctx).Result(); err == nil {
				n.noteGossip(text)
			}
		})
	}
	asked.Wait()
}

// torn returns the torn hash slots, which lack keys because a failover interrupted their move. The owner of a torn slot
// is neither of the two nodes that have the slot's keys.
func (t *Topology) torn() (slots []int) {
	for p := range t.moves {
		if t.tornBar(p) != nil {
			slots = append(slots, t.config.Partitions[p].Slot)
		}
	}
	return slots
}

// logTorn logs the torn hash slots when their number differs from the number at the last refresh.
func (t *Topology) logTorn() {
	slots := t.torn()
	if len(slots) > 0 && len(slots) != t.tornBefore {
		t.config.Logger.Error("Redis cluster", "slots", fmt.Sprint(slots), "error", barTorn)
	}
	t.tornBefore = len(slots)
}
