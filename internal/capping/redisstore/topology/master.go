package topology

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
)

// A history holds the replication data of a server outside a cluster: the role and the replication ids. All replicas of
// a Redis server have the replication id of the server. A replica that is promoted to a master gets a new replication
// id, and also reports the former id.
type history struct {
	node       *Node
	role       string
	id, former string
	follows    string // address of the master of a replica
	err        error
}

func (n *Node) history(ctx context.Context) history {
	text, err := n.client.Info(ctx, "replication").Result()
	if err != nil {
		return history{node: n, err: fmt.Errorf("node %s: %w", n.addr, err)}
	}
	facts := ParseInfo(text)
	h := history{node: n, role: facts["role"], id: facts["master_replid"], former: facts["master_replid2"]}
	if facts["master_host"] != "" {
		h.follows = net.JoinHostPort(facts["master_host"], facts["master_port"])
	}
	return h
}

// noMaster returns the error for a server that the store cannot use as the master.
func (h *history) noMaster() error {
	if h.follows == "" {
		return fmt.Errorf("node %s must be a master", h.node.addr)
	}
	return fmt.Errorf("node %s must be a master, but is a replica of %s: "+
		"use the address of the master in addrs, not a read-only endpoint", h.node.addr, h.follows)
}

// refreshServers finds the master among the configured servers outside a cluster, or uses the master that Sentinel
// names.
func (t *Topology) refreshServers(ctx context.Context) error {
	told := t.histories(ctx)
	chosen, err := t.elect(told)
	if chosen == nil {
		return err
	}
	if chosen.id != t.replid { // the server was promoted, perhaps behind the same name, or restarted
		chosen.node.vetted.Store(0)
		chosen.node.scripts.Store(false)
	}
	if chosen.node != t.master {
		t.heirs = map[*Node]bool{}
	}
	t.master, t.replid = chosen.node, chosen.id
	t.noteHeirs(ctx, told)
	for p := range t.routes {
		t.routes[p].Store(chosen.node)
	}
	return err
}

// noteHeirs records the configured servers that have all data of the current master and may therefore replace the
// master. If another server is a master at the same time, it may not replace the current master, because it lacks the
// sends that the current master records. Two servers may have replied to the refresh at different times. The method
// noteHeirs therefore asks the current master once more, to make sure that both servers were masters at the same time.
func (t *Topology) noteHeirs(ctx context.Context, told []history) {
	var beside []*Node
	for _, h := range told {
		switch {
		case h.role == "slave" && h.id == t.replid:
			t.heirs[h.node] = true
		case h.role == "master" && h.node != t.master:
			beside = append(beside, h.node)
		}
	}
	for _, n := range beside {
		if heir, known := t.heirs[n]; known && !heir {
			continue
		}
		if again := t.master.history(ctx); again.role == "master" && again.id == t.replid {
			t.heirs[n] = false
		}
	}
}

// The method "histories" asks all configured servers at the same time for their role and their replication ids.
func (t *Topology) histories(ctx context.Context) []history {
	addrs := t.config.Addrs
	if t.config.SentinelMaster != "" {
		addrs = []string{"sentinel:" + t.config.SentinelMaster}
	}
	told := make([]history, len(addrs))
	var asked sync.WaitGroup
	for i, addr := range addrs {
		asked.Go(func() { told[i] = t.node(addr).history(ctx) })
	}
	asked.Wait()
	return told
}

// The method "elect" chooses and returns the master among the servers. The current master stays the master while it
// reports the role of a master. Another server may take over only with the same replication history; otherwise,
// recorded sends would be lost. If elect returns a master and an error, the error is about another server.
func (t *Topology) elect(told []history) (*history, error) {
	var faults, rivals []error
	var chosen *history
	for i := range told {
		h := &told[i]
		switch {
		case h.err != nil:
			faults = append(faults, h.err)
		case h.role != "master":
			faults = append(faults, h.noMaster())
		case h.node == t.master, chosen == nil && t.inherits(h, told):
			if chosen != nil {
				rivals = append(rivals, rival(chosen))
			}
			chosen = h
		// Two names lead to one server here, because a promoted server would have a new replication id.
		case chosen != nil && h.id != "" && h.id == chosen.id:
		default:
			rivals = append(rivals, rival(h))
		}
	}
	if t.master == nil && len(rivals) > 0 {
		rivals, chosen = append(rivals, rival(chosen)), nil
	}
	if chosen == nil {
		return nil, errors.Join(append(faults, rivals...)...)
	}
	return chosen, errors.Join(rivals...)
}

// The method "inherits" reports whether the server h has all data of the current master. The server h has all data if h
// was a replica of the current master before a promotion, or if the current master now replicates from h.
func (t *Topology) inherits(h *history, told []history) bool {
	if t.master == nil {
		return true
	}
	heir, known := t.heirs[h.node]
	if !known {
		heir = t.replid != "" && (h.id == t.replid || h.former == t.replid)
	}
	return heir || slices.ContainsFunc(told, func(old history) bool {
		return old.node == t.master && old.role == "slave" && old.id == h.id
	})
}

func rival(h *history) error {
	return fmt.Errorf("node %s is a master, but lacks the sends of another master in addrs: "+
		"make the node a replica of the other master, or remove the node from addrs and restart capper", h.node.addr)
}
