package topology

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// importing is a slot that a node takes over, key by key, from another. While
// it does, the other tells callers where the keys are that have gone. When the
// other fails, the replica that is promoted in its place does not know of it
// (Redis does not replicate that), and takes those keys for users who got
// nothing: the slot is torn.
type importing struct {
	slot int
	from string // the other's id
}

// move is a slot that is moved from one node to another, by their ids.
type move struct{ from, to string }

// Moving reports whether the partition's slot is being moved, as of the last refresh.
func (t *Topology) Moving(partition int) bool { return t.moves[partition].Load() != nil }

// tornBar is why the partition's users are unavailable although their slot
// has an owner: it is neither of the two nodes that have the keys.
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

// gossip is what a node's CLUSTER NODES says beside its replicas.
type gossip struct {
	self    string
	imports []importing
	idle    []string // addresses of masters without slots, which may be importing their first
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

// importsOf reads the slots of a node: 0-99 or 7, and [93-<-id] of one that it
// imports.
func importsOf(slots []string) (imports []importing) {
	for _, text := range slots {
		number, from, found := strings.Cut(strings.Trim(text, "[]"), "-<-")
		if slot, err := strconv.Atoi(number); found && err == nil {
			imports = append(imports, importing{slot, from})
		}
	}
	return imports
}

// noteGossip keeps what the node says of slots that are being moved.
func (n *Node) noteGossip(text string) {
	g := gossipOf(text, n.addr)
	n.id.Store(&g.self)
	n.told.Store(&g)
}

// followMoves learns which slots are being moved: from the masters, which have
// just been asked, and from those that have no slot yet. A node that does not
// answer counts as it last did, as long as the others know it.
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

// askIdle asks the masters without slots that the others know.
func (t *Topology) askIdle(ctx context.Context, masters []*Node) {
	idle := map[string]bool{}
	for _, n := range masters {
		if g := n.told.Load(); g != nil {
			for _, addr := range g.idle {
				idle[addr] = true
			}
		}
	}
	for _, n := range t.Nodes() { // who has become a replica imports nothing any more
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

// torn are the slots of partitions that are torn.
func (t *Topology) torn() (slots []int) {
	for p := range t.moves {
		if t.tornBar(p) != nil {
			slots = append(slots, t.config.Partitions[p].Slot)
		}
	}
	return slots
}

// logTorn logs slots that have been torn since the last look.
func (t *Topology) logTorn() {
	slots := t.torn()
	if len(slots) > 0 && len(slots) != t.tornBefore {
		t.config.Logger.Error("Redis cluster", "slots", fmt.Sprint(slots), "error", barTorn)
	}
	t.tornBefore = len(slots)
}
