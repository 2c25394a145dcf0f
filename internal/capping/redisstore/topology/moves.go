package topology

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// An importing value is a hash slot that a cluster node is taking over from another node, one key after another. While
// a hash slot is moving, the old node redirects callers to the new node for moved keys. If the old node fails during
// the move, a replica of the old node becomes a master. The promoted replica does not know of the move, because Redis
// does not replicate the state of a move. The promoted replica lacks the moved keys, and treats their users as users
// without sends. If a failover interrupted a hash slot's move and the slot lacks keys, the slot is called torn.
type importing struct {
	slot int
	from string // id of the node that had the slot
}

// A move is a hash slot's move in progress from one node to another. The fields "from" and "to" are the cluster ids of
// the old node and of the new node.
type move struct{ from, to string }

// The method Moving reports whether the cluster was moving the hash slot of the partition at the last refresh.
func (t *Topology) Moving(partition int) bool { return t.moves[partition].Load() != nil }

// If the hash slot of the partition is torn (some of its keys are on another node), tornBar returns a quarantine (no
// decisions until an operator accepts the loss). Otherwise, tornBar returns nil. A hash slot is torn if a third node
// owns the slot after a move between two nodes, because only these two nodes have the keys.
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

// A gossip value holds data from a node's reply to CLUSTER NODES: the other nodes, and the hash slots that are moving.
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

// importsOf returns the importing slots of one node from the slots in CLUSTER NODES. The texts "0-99" and "7" mean
// owned slots. The text "[93-<-id]" means a slot that the node is importing.
func importsOf(slots []string) (imports []importing) {
	for _, text := range slots {
		number, from, found := strings.Cut(strings.Trim(text, "[]"), "-<-")
		if slot, err := strconv.Atoi(number); found && err == nil {
			imports = append(imports, importing{slot, from})
		}
	}
	return imports
}

// noteGossip parses and stores a node's reply to CLUSTER NODES.
func (n *Node) noteGossip(text string) {
	g := gossipOf(text, n.addr)
	n.id.Store(&g.self)
	n.told.Store(&g)
}

// followMoves finds the hash slots that the cluster is moving, from the reports of all masters and of nodes without
// slots. If a node does not answer, followMoves uses the node's last report as long as other nodes still list the node.
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

// askIdle reads CLUSTER NODES from masters without slots, and from former masters that were importing slots.
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

// The method "torn" returns the hash slots that lack keys because a failover interrupted their move. A third node owns
// a torn slot, while two other nodes have the slot's keys.
func (t *Topology) torn() (slots []int) {
	for p := range t.moves {
		if t.tornBar(p) != nil {
			slots = append(slots, t.config.Partitions[p].Slot)
		}
	}
	return slots
}

// logTorn logs the torn hash slots (slots that lack keys) if their number has changed since the last refresh.
func (t *Topology) logTorn() {
	slots := t.torn()
	if len(slots) > 0 && len(slots) != t.tornBefore {
		t.config.Logger.Error("Redis cluster", "slots", fmt.Sprint(slots), "error", barTorn)
	}
	t.tornBefore = len(slots)
}
