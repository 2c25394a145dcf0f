package topology

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"

	"capper/internal/capping/redisstore/topology/connect"
	"capper/internal/capping/redisstore/topology/examine"
)

// checkSuccessors examines the replicas of masters, as a failover makes them
// masters. One that does not answer is no reason to refuse.
func (t *Topology) checkSuccessors(ctx context.Context, f *examine.Findings, masters []*Node) {
	var addrs []string
	for _, n := range masters {
		more, err := n.successors(ctx)
		if err != nil {
			f.Warn("node %s: its replicas are not checked: %v", n.addr, err)
		}
		addrs = append(addrs, more...)
	}
	found := make([]examine.Findings, len(addrs))
	var asked sync.WaitGroup
	for i, addr := range addrs {
		asked.Go(func() { t.checkSuccessor(ctx, &found[i], addr) })
	}
	asked.Wait()
	for _, more := range found {
		f.Add(more)
	}
}

// checkSuccessor asks over a connection of its own: the replica of a
// server outside a cluster is not one of the nodes, which every refresh asks.
func (t *Topology) checkSuccessor(ctx context.Context, f *examine.Findings, addr string) {
	client := t.config.DirectClient(addr, &connect.RoundTrips{})
	ctx, cancel := context.WithTimeout(ctx, 2*t.attempt())
	defer cancel()
	defer func() { _ = client.Close() }()
	who := "replica " + addr
	lacking, err := t.rules.Rights(ctx, client, t.trial(who, nil))
	if lacking != nil {
		f.Refusals = append(f.Refusals, lacking)
		return
	}
	if err == nil {
		err = t.rules.Settings(ctx, client, f, who)
	}
	if err != nil {
		f.Warn("%s: not checked: %v", who, err)
	}
}

// successors are the addresses of the node's replicas, those that do not work
// too. CLUSTER SLOTS would leave those out, and new ones that got no write yet.
func (n *Node) successors(ctx context.Context) ([]string, error) {
	if n.top.cluster {
		text, err := n.client.ClusterNodes(ctx).Result()
		return slavesOf(text, n.addr), err
	}
	text, err := n.client.Info(ctx, "replication").Result()
	return slavesIn(connect.ParseInfo(text)), err
}

// slavesIn reads INFO replication: slave0:ip=…,port=…,state=….
func slavesIn(info connect.Facts) (addrs []string) {
	for i := range info.Number("connected_slaves") {
		fields := connect.Facts{}
		for field := range strings.SplitSeq(info["slave"+strconv.FormatInt(i, 10)], ",") {
			name, value, _ := strings.Cut(field, "=")
			fields[name] = value
		}
		addrs = append(addrs, net.JoinHostPort(fields["ip"], fields["port"]))
	}
	return addrs
}

// slavesOf reads CLUSTER NODES, where an address is ip:port@bus,hostname. The
// replicas of a master that is known by its name are known by theirs.
func slavesOf(text, master string) (addrs []string) {
	for fields := range slaves(text) {
		if addr := listedAddr(fields[1], master); addr != "" {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

// listedAddr reads an address of CLUSTER NODES, as asked of a node; "": none.
func listedAddr(text, asked string) string {
	host, _, _ := net.SplitHostPort(asked)
	addr, name, _ := strings.Cut(text, ",")
	addr, _, _ = strings.Cut(addr, "@")
	name, _, _ = strings.Cut(name, ",") // Redis 7.2 has more behind it
	colon := strings.LastIndexByte(addr, ':')
	if colon < 0 {
		return ""
	}
	if net.ParseIP(host) != nil || name == "" {
		name = addr[:colon]
	}
	return net.JoinHostPort(name, addr[colon+1:])
}
