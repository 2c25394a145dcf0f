package topology

import (
	"context"
	"iter"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// checkSuccessors examines the replicas of all masters, because a failover makes a replica a master. The result of
// checkSuccessors contains the findings for each master. A replica that does not answer is no reason to refuse the
// master.
func (t *Topology) checkSuccessors(ctx context.Context, masters []*Node) []Findings {
	found := make([]Findings, len(masters))
	var asked sync.WaitGroup
	for i, n := range masters {
		asked.Go(func() { n.checkSuccessors(ctx, &found[i]) })
	}
	asked.Wait()
	return found
}

func (n *Node) checkSuccessors(ctx context.Context, f *Findings) {
	addrs, err := n.successors(ctx)
	if err != nil {
		f.Miss("node %s: its replicas are not checked: %v", n.addr, err)
	}
	found := make([]Findings, len(addrs))
	var asked sync.WaitGroup
	for i, addr := range addrs {
		asked.Go(func() { n.top.checkSuccessor(ctx, &found[i], addr) })
	}
	asked.Wait()
	for _, more := range found {
		f.Add(more)
	}
}

// checkSuccessor opens a connection to one replica and examines the replica. Outside a cluster, the store has no other
// connection to replicas, because the refresh does not ask replicas.
func (t *Topology) checkSuccessor(ctx context.Context, f *Findings, addr string) {
	client := t.config.DirectClient(addr, &RoundTrips{}, nil)
	ctx, cancel := context.WithTimeout(ctx, 2*t.attempt())
	defer cancel()
	defer func() { _ = client.Close() }()
	who := "replica " + addr
	found, err := t.rules.Survey(ctx, client, t.trial(who, nil))
	if err != nil {
		f.Miss("%s: not checked: %v", who, err)
		return
	}
	f.Add(found.Judged())
}

// The method "successors" returns the addresses of all replicas of the node, working or not. The method "successors"
// does not use CLUSTER SLOTS, because that reply omits failed replicas, and new replicas that have received no write.
func (n *Node) successors(ctx context.Context) ([]string, error) {
	if n.top.cluster {
		text, err := n.client.ClusterNodes(ctx).Result()
		return slavesOf(text, n.addr), err
	}
	text, err := n.client.Info(ctx, "replication").Result()
	return FedAddrs(ParseInfo(text)), err
}

// FedAddrs returns the addresses of the replicas that a reply of INFO replication lists.
func FedAddrs(info Facts) (addrs []string) {
	for _, replica := range replicasOf(info) {
		addrs = append(addrs, addrOf(replica))
	}
	return addrs
}

// replicasOf reads the replicas from a reply of INFO replication, which has lines such as slave0:ip=…,port=…,state=….
func replicasOf(info Facts) (replicas []Facts) {
	for i := range info.Number("connected_slaves") {
		fields := Facts{}
		for field := range strings.SplitSeq(info["slave"+strconv.FormatInt(i, 10)], ",") {
			name, value, _ := strings.Cut(field, "=")
			fields[name] = value
		}
		replicas = append(replicas, fields)
	}
	return replicas
}

func addrOf(replica Facts) string { return net.JoinHostPort(replica["ip"], replica["port"]) }

// slavesOf returns the addresses of the replicas that a reply of CLUSTER NODES lists. An address in a reply of CLUSTER
// NODES has the form ip:port@bus,hostname. If the store dialed the master by host name, slavesOf returns host names of
// replicas instead of IP addresses.
func slavesOf(text, master string) (addrs []string) {
	for fields := range slaves(text) {
		if addr := listedAddr(fields[1], master); addr != "" {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

// listedAddr parses an address in a reply of CLUSTER NODES. The argument "asked" of listedAddr is the address of the
// node that replied. If the text has no address, listedAddr returns "".
func listedAddr(text, asked string) string {
	host, _, _ := net.SplitHostPort(asked)
	addr, name, _ := strings.Cut(text, ",")
	addr, _, _ = strings.Cut(addr, "@")
	name, _, _ = strings.Cut(name, ",") // Redis 7.2 appends further fields
	colon := strings.LastIndexByte(addr, ':')
	if colon < 0 {
		return ""
	}
	if net.ParseIP(host) != nil || name == "" {
		name = addr[:colon]
	}
	return net.JoinHostPort(name, addr[colon+1:])
}

// Member is a node in the reply of CLUSTER NODES.
type Member struct {
	ID, Addr, Master string // Master: id of the node's master; "" for a master
	Flags            []string
	Slots            [][2]int // first and last slot
	Moving           int      // number of slots that are moving to or from the node
}

// Members returns the nodes in a reply of CLUSTER NODES. The argument "asked" of Members is the address of the node
// that replied.
func Members(text, asked string) (members []Member) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 8 {
			continue
		}
		m := Member{ID: f[0], Addr: listedAddr(f[1], asked), Flags: strings.Split(f[2], ",")}
		if f[3] != "-" {
			m.Master = f[3]
		}
		if host, port, _ := net.SplitHostPort(m.Addr); host == "" || slices.Contains(m.Flags, "myself") {
			own, ownPort, _ := net.SplitHostPort(asked)
			if slices.Contains(m.Flags, "myself") {
				port = ownPort
			}
			m.Addr = net.JoinHostPort(own, port)
		}
		for _, part := range f[8:] {
			m.addSlots(part)
		}
		members = append(members, m)
	}
	return members
}

// addSlots parses "5", "0-5460" or "[77->-id]". The form "[77->-id]" means that the slot 77 is moving.
func (m *Member) addSlots(part string) {
	if strings.HasPrefix(part, "[") {
		m.Moving++
		return
	}
	first, last, ranged := strings.Cut(part, "-")
	if !ranged {
		last = first
	}
	from, err := strconv.Atoi(first)
	to, err2 := strconv.Atoi(last)
	if err == nil && err2 == nil {
		m.Slots = append(m.Slots, [2]int{from, to})
	}
}

// The method Serves reports whether this node of the cluster holds the hash slot.
func (m *Member) Serves(slot int) bool {
	return slices.ContainsFunc(m.Slots, func(r [2]int) bool { return r[0] <= slot && slot <= r[1] })
}

// countSlaves counts the working replicas and all replicas in a reply of CLUSTER NODES.
func countSlaves(text string) (alive, all int) {
	for fields := range slaves(text) {
		all++
		if !slices.Contains(strings.Split(fields[2], ","), "fail") {
			alive++
		}
	}
	return alive, all
}

// mostSlaves returns the largest number of replicas that a master of the cluster has, plus the number of failed
// masters. A failed master that returns after a failover becomes a replica.
func mostSlaves(text string) int {
	of, failed := map[string]int{}, 0
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 4 {
			continue
		}
		switch flags := strings.Split(fields[2], ","); {
		case slices.Contains(flags, "slave"):
			of[fields[3]]++
		case slices.Contains(flags, "fail"):
			failed++
		}
	}
	most := 0
	for _, n := range of {
		most = max(most, n)
	}
	return most + failed
}

// The function "heirless" reports whether the node has replicas, but no replica that may become a master.
func heirless(text string) bool {
	barred, all := 0, 0
	for fields := range slaves(text) {
		all++
		if slices.Contains(strings.Split(fields[2], ","), "nofailover") {
			barred++
		}
	}
	return all > 0 && barred == all
}

// For each replica of the node that replied, the function "slaves" yields the fields of the replica's line in CLUSTER
// NODES. The first fields are the id, the address, the flags and the id of the master.
func slaves(text string) iter.Seq[[]string] {
	self := ""
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 2 && slices.Contains(strings.Split(f[2], ","), "myself") {
			self = f[0]
		}
	}
	return func(yield func([]string) bool) {
		for line := range strings.Lines(text) {
			if f := strings.Fields(line); len(f) > 3 && f[3] == self && !yield(f) {
				return
			}
		}
	}
}
