package topology

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"capper/internal/capping/redisstore/topology/connect"
)

// refreshAsks is how many nodes are asked for their view at once.
const refreshAsks = 5

// view is what one node says about the cluster.
type view struct {
	from    *Node
	slots   []slotRange
	members map[string]bool // ids of the nodes that serve slots
	ok      bool
	epoch   int64
}

// better prefers views of nodes that see a working cluster, then newer ones:
// a node that was cut off keeps an old view.
func (v *view) better(than *view) bool {
	if than == nil || v.ok != than.ok {
		return than == nil || v.ok
	}
	return v.epoch > than.epoch
}

// of reports whether the view is of the cluster that has had those members.
// Nodes come and go, but not all of them from one view to the next.
func (v *view) of(members map[string]bool) bool {
	for id := range v.members {
		if members[id] {
			return true
		}
	}
	return len(members) == 0
}

// stranger is why the view is not of our cluster.
func (v *view) stranger() error {
	if len(v.members) == 0 {
		return fmt.Errorf("node %s: knows of no node that serves slots", v.from.addr)
	}
	return fmt.Errorf("node %s: belongs to another cluster than the one in use: take it out of addrs, "+
		"or start capper again if the cluster was created anew", v.from.addr)
}

// view asks the node.
func (n *Node) view(ctx context.Context) (*view, error) {
	pipe := n.client.Pipeline()
	described, info := slotsCommand(ctx, pipe), pipe.ClusterInfo(ctx)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("node %s: %w", n.addr, err)
	}
	ranges, err := parseSlots(described.Val())
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", n.addr, err)
	}
	facts := connect.ParseInfo(info.Val())
	v := &view{
		from: n, slots: ranges, members: map[string]bool{},
		ok: facts["cluster_state"] == "ok", epoch: facts.Number("cluster_current_epoch"),
	}
	for _, part := range v.slots {
		for _, m := range part.members {
			if m.id != "" {
				v.members[m.id] = true
			}
		}
	}
	return v, nil
}

func (t *Topology) refreshCluster(ctx context.Context) error {
	best, err := t.survey(ctx)
	if best == nil {
		return fmt.Errorf("no node tells the cluster's slots: %w", err)
	}
	t.adopt(best)
	return nil
}

// adopt takes the routes from the view.
func (t *Topology) adopt(best *view) {
	owners := make([]*Node, slotCount)
	listed := map[string]bool{}
	for _, part := range best.slots {
		for i, m := range part.members {
			addr := best.from.resolve(m.addr)
			listed[addr] = true
			n := t.node(addr)
			if m.id != "" {
				n.id.Store(&m.id)
			}
			if i > 0 {
				continue
			}
			for slot := part.start; slot <= part.end; slot++ {
				owners[slot] = n
			}
		}
	}
	for p := range t.routes {
		t.routes[p].Store(owners[t.config.Partitions[p].Slot])
	}
	if len(best.members) > 0 {
		t.members = best.members
	}
	t.forget(listed)
}

// survey asks several nodes for their view and returns the best one of our
// cluster; it waits for more than half of those asked.
func (t *Topology) survey(ctx context.Context) (*view, error) {
	asked := t.sample()
	type answer struct {
		view *view
		err  error
	}
	answers := make(chan answer, len(asked))
	for _, n := range asked {
		t.wait.Add(1)
		go func() {
			defer t.wait.Done()
			v, err := n.view(ctx)
			answers <- answer{v, err}
		}()
	}
	var best *view
	var err error
	for left, good := len(asked), 0; left > 0 && good <= len(asked)/2; left-- {
		a := <-answers
		if a.err == nil {
			a.err = t.recognise(a.view)
		}
		if a.err != nil {
			err = a.err
			continue
		}
		good++
		if a.view.better(best) {
			best = a.view
		}
	}
	return best, err
}

// recognise notes whether the view is of our cluster. A node without one is no
// alarm: it was taken out of the cluster, or is not in it yet.
func (t *Topology) recognise(v *view) error {
	if v.of(t.members) {
		delete(t.strangers, v.from.addr)
		return nil
	}
	if len(v.members) == 0 {
		delete(t.strangers, v.from.addr)
		return v.stranger()
	}
	t.strangers[v.from.addr] = v.stranger()
	return t.strangers[v.from.addr]
}

// sample is some nodes, drawn by lot.
func (t *Topology) sample() []*Node {
	asked := t.Nodes()
	for _, addr := range t.config.Addrs {
		if n := t.node(addr); len(asked) < refreshAsks && !slices.Contains(asked, n) {
			asked = append(asked, n)
		}
	}
	rand.Shuffle(len(asked), func(i, j int) { asked[i], asked[j] = asked[j], asked[i] })
	return asked[:min(len(asked), refreshAsks)]
}
