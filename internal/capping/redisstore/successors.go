package redisstore

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// inGroup says where settings are that a managed server does not let be set.
const inGroup = " (of a managed service: in the node's parameter group)"

func checkEviction(f *findings, who string, info facts, config *redis.MapStringStringCmd) {
	policy := info["maxmemory_policy"]
	if policy == "" {
		policy = config.Val()["maxmemory-policy"]
	}
	switch policy {
	case "noeviction":
	case "":
		f.warn("%s: hides its maxmemory-policy: make sure that it is noeviction%s", who, inGroup)
	default:
		f.refuse("%s: maxmemory-policy is %s, which drops logs silently: set it to noeviction%s", who, policy, inGroup)
	}
}

func (t *topology) checkAppendOnly(f *findings, who string, info facts, fsync string) {
	none := t.config.ReplicaAcks.none()
	switch on := info["aof_enabled"]; {
	case on == "1" && fsync == "no":
		f.warn("%s: appendfsync is no: a restart may forget many seconds of sends: set it to everysec or always", who)
	case on == "1":
	case t.config.WithoutAppendOnly && !none:
		f.warn("%s: appendonly is not on, as allow_no_append_only says: a master that is restarted empty empties its replicas; only replacing it is safe", who)
	case none && on == "0":
		f.warn("%s: appendonly is no: a restart forgets every send since its last snapshot", who)
	case none:
	case on == "":
		f.warn("%s: hides whether its append-only file is on: without it a master that restarts empties its replicas", who)
	default:
		f.refuse("%s: appendonly is no: a master that restarts comes back empty and empties its replicas: set appendonly yes%s, or allow_no_append_only: true where lost nodes are replaced and never restarted empty", who, inGroup)
	}
}

// checkSuccessors examines the replicas of masters, as a failover makes them
// masters. One that does not answer is no reason to refuse.
func (t *topology) checkSuccessors(ctx context.Context, f *findings, masters []*node) {
	var addrs []string
	for _, n := range masters {
		more, err := n.successors(ctx)
		if err != nil {
			f.warn("node %s: its replicas are not checked: %v", n.addr, err)
		}
		addrs = append(addrs, more...)
	}
	found := make([]findings, len(addrs))
	var asked sync.WaitGroup
	for i, addr := range addrs {
		asked.Go(func() { t.checkSuccessor(ctx, &found[i], addr) })
	}
	asked.Wait()
	for _, more := range found {
		f.add(more)
	}
}

// checkSuccessor asks over a connection of its own: the replica of a
// standalone server is none of the nodes, which every refresh asks.
func (t *topology) checkSuccessor(ctx context.Context, f *findings, addr string) {
	client := newDirectClient(t.config, addr, &roundTrips{})
	ctx, cancel := context.WithTimeout(ctx, 2*t.attempt())
	defer cancel()
	defer func() { _ = client.Close() }()
	who := "replica " + addr
	lacking, err := t.lackingRights(ctx, client, who, t.trialKey(0), false)
	if lacking != nil {
		f.refusals = append(f.refusals, lacking)
		return
	}
	if err == nil {
		err = t.inspect(ctx, client, f, who)
	}
	if err != nil {
		f.warn("%s: not checked: %v", who, err)
	}
}

// vetEvery is how often the settings of masters are examined: somebody may
// change them.
const vetEvery = 30 * time.Second

// vet examines a master and its replicas while the store runs: one that is new,
// and all of them from time to time. It is too late to refuse it, since its
// users would be unavailable, so operators are told. Of replicas only what will
// break a promise is told: those that do not answer are known otherwise.
func (n *node) vet(ctx context.Context) {
	var f, later findings
	if _, err := n.inspect(ctx, &f); err != nil {
		return // asked again at the next refresh
	}
	n.top.checkSuccessors(ctx, &later, []*node{n})
	f.refusals = append(f.refusals, later.refusals...)
	known, broken := n.warned, n.breach
	n.found(&f)
	for _, warning := range f.warnings {
		if !slices.Contains(known, warning) {
			n.top.config.Logger.Warn("Redis master", "warning", warning)
		}
	}
	if n.breach != "" && n.breach != broken {
		n.top.config.Logger.Error("Redis master breaks a promise", "error", n.breach)
	}
}

// found keeps what an inspection found.
func (n *node) found(f *findings) {
	n.vetted.Store(time.Now().UnixMilli())
	n.warned, n.breach = f.warnings, ""
	if err := errors.Join(f.refusals...); err != nil {
		n.breach = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
}

// successors are the addresses of the node's replicas, those that do not work
// too. CLUSTER SLOTS would leave those out, and new ones that got no write yet.
func (n *node) successors(ctx context.Context) ([]string, error) {
	if n.top.cluster {
		text, err := n.client.ClusterNodes(ctx).Result()
		return slavesOf(text, n.addr), err
	}
	text, err := n.client.Info(ctx, "replication").Result()
	return slavesIn(parseInfo(text)), err
}

// slavesIn reads INFO replication: slave0:ip=…,port=…,state=….
func slavesIn(info facts) (addrs []string) {
	for i := range info.number("connected_slaves") {
		fields := facts{}
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
