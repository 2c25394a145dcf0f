package topology

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// refreshAsks is the number of nodes that one refresh asks for their view of the cluster.
const refreshAsks = 5

// The type "view" is one node's description of the cluster.
type view struct {
	from    *Node
	slots   []slotRange
	members map[string]bool // ids of the nodes that serve slots
	ok      bool
	epoch   int64
}

// The method "better" reports whether the store should use the view v of the cluster instead of the view "than". A view
// in which the cluster works is better than a view in which the cluster has failed. If the cluster works in both views,
// or has failed in both, the newer view is better, because a node that was cut off keeps an old view.
func (v *view) better(than *view) bool {
	if than == nil || v.ok != than.ok {
		return than == nil || v.ok
	}
	return v.epoch > than.epoch
}

// The method "of" reports whether the view shows the store's own cluster, that is, whether the view has one of the
// given nodes of this cluster. Nodes join and leave a cluster, but two successive views of a cluster always have a node
// in common.
func (v *view) of(members map[string]bool) bool {
	for id := range v.members {
		if members[id] {
			return true
		}
	}
	return len(members) == 0
}

// The method "stranger" returns the error for a node whose view does not show our cluster.
func (v *view) stranger() error {
	if len(v.members) == 0 {
		return fmt.Errorf("node %s reports no cluster node that serves hash slots", v.from.addr)
	}
	return fmt.Errorf("node %s belongs to another Redis cluster: "+
		"remove it from addrs, or restart capper if the cluster was created again", v.from.addr)
}

// The method "view" asks the node for its view of the cluster: the members, and the slots of each node.
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
	if err := n.confusion(ranges); err != nil {
		return nil, err
	}
	facts := ParseInfo(info.Val())
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

// The method "confusion" returns an error if several masters have the same address in the reply of the node. If several
// masters have the same address, the store cannot find the master of a slot.
func (n *Node) confusion(ranges []slotRange) error {
	masters := map[string]string{}
	for _, part := range ranges {
		if len(part.members) == 0 || part.members[0].id == "" {
			continue
		}
		addr, id := n.resolve(part.members[0].addr), part.members[0].id
		if other, known := masters[addr]; known && other != id {
			return fmt.Errorf("node %s reports that several nodes have the address %s: "+
				"set 'cluster-preferred-endpoint-type' to 'ip' or 'hostname' on these nodes, "+
				"or give each node its own port",
				n.addr, addr)
		}
		masters[addr] = id
	}
	return nil
}

func (t *Topology) refreshCluster(ctx context.Context) error {
	best, err := t.survey(ctx)
	if best == nil {
		return fmt.Errorf("read the hash slots of the Redis cluster: no node answers: %w", err)
	}
	t.adopt(best)
	return nil
}

// The method "adopt" replaces the routes of the store (the node of each partition) by the routes of the view.
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
	t.failing = !best.ok
	t.closeUnlisted(listed)
}

// The method "survey" asks several nodes for their view of the cluster, and returns the best view of our cluster. The
// method "survey" waits until more than half of the asked nodes have replied.
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
			a.err = t.noteView(a.view)
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

// noteView records whether the view of a node shows our cluster, and otherwise returns an error. A node whose view has
// no members has left its cluster, or has not joined a cluster yet. The method noteView does not record such a node as
// a node of another cluster.
func (t *Topology) noteView(v *view) error {
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

// The method "sample" chooses at most refreshAsks random nodes for the questions of a refresh.
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

// slotCount is the number of hash slots of a Redis Cluster.
const slotCount = 16384

// A slotRange is a range of hash slots with the nodes that serve this range. The first node of a slotRange is the
// master.
type slotRange struct {
	start, end int
	members    []member
}

// A member is a node in the reply of CLUSTER SLOTS. An address without a host means the host of the server that
// replied.
type member struct{ addr, id string }

// slotsCommand adds the command CLUSTER SLOTS to the pipeline in raw form. The Redis library's own command fails if a
// host is unknown: the library takes the null in place of the host for the end of the reply.
func slotsCommand(ctx context.Context, pipe redis.Pipeliner) *redis.SliceCmd {
	cmd := redis.NewSliceCmd(ctx, "cluster", "slots")
	_ = pipe.Process(ctx, cmd)
	return cmd
}

func parseSlots(reply []any) ([]slotRange, error) {
	ranges := make([]slotRange, len(reply))
	for i, described := range reply {
		fields, _ := described.([]any)
		if len(fields) < 2 {
			return nil, fmt.Errorf("reply to CLUSTER SLOTS: slot range %d is not valid: %v", i, described)
		}
		start, ok := fields[0].(int64)
		end, ok2 := fields[1].(int64)
		if !ok || !ok2 || start < 0 || end < start || end >= slotCount {
			return nil, fmt.Errorf("reply to CLUSTER SLOTS: slot range %d from %v to %v is not valid",
				i, fields[0], fields[1])
		}
		ranges[i] = slotRange{start: int(start), end: int(end)}
		for _, node := range fields[2:] {
			m, err := parseMember(node)
			if err != nil {
				return nil, err
			}
			ranges[i].members = append(ranges[i].members, m)
		}
	}
	return ranges, nil
}

// parseMember parses one node in a reply of CLUSTER SLOTS. A node has a host, a port, an id (since Redis 4) and further
// addresses (since Redis 7). Servers behind a common endpoint report a null or empty host. A node without an announced
// name has the host "?", and its address is among the further addresses.
func parseMember(described any) (member, error) {
	fields, _ := described.([]any)
	if len(fields) < 2 {
		return member{}, fmt.Errorf("reply to CLUSTER SLOTS: node %v is not valid", described)
	}
	host, _ := fields[0].(string)
	port, ok := fields[1].(int64)
	if !ok || port < 1 || port > 65535 {
		return member{}, fmt.Errorf("reply to CLUSTER SLOTS: node %v has an invalid port %v", host, fields[1])
	}
	var m member
	if len(fields) > 2 {
		m.id, _ = fields[2].(string)
	}
	if host == unknownHost {
		host = ""
		if len(fields) > 3 {
			host = otherAddress(fields[3], "ip")
		}
	}
	m.addr = net.JoinHostPort(host, strconv.FormatInt(port, 10))
	return m, nil
}

// unknownHost is the text in place of the host in replies of a Redis server that does not know its own host name.
const unknownHost = "?"

// otherAddress returns the value of a name in a flat list of names and values.
func otherAddress(list any, name string) string {
	pairs, _ := list.([]any)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] == name {
			value, _ := pairs[i+1].(string)
			return value
		}
	}
	return ""
}
