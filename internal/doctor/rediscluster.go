package doctor

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"capper/internal/capping/redisstore"
	"capper/internal/server/gate"
)

// isExpiry reports whether the error says that a certificate has expired or is not yet valid. A separate finding
// reports a certificate that has expired or is not yet valid.
func isExpiry(err error) bool {
	var invalid x509.CertificateInvalidError
	return errors.As(err, &invalid) && invalid.Reason == x509.Expired
}

// onlyHere reports whether all addresses are loopback addresses, so that the servers are on this machine.
func onlyHere(addrs []string) bool {
	return !slices.ContainsFunc(addrs, func(addr string) bool { return !gate.IsLoopback(addr) })
}

const allSlots = 16384

// These constants are the recommended range for the Redis setting cluster-node-timeout. A Redis Cluster treats a node
// as failed if the node does not respond for the time cluster-node-timeout.
const (
	shortestNodeTimeout = time.Second
	longestNodeTimeout  = 15 * time.Second
)

func (s *servers) judgeCluster(n *notes, r *redisstore.Report) {
	s.judgeVersions(n, r)
	if !r.Cluster {
		n.Skip("", "a single server without a cluster")
		return
	}
	if r.State != "ok" || r.Covered != allSlots {
		judgeSlots(n, r)
	} else {
		n.OK("slots", "all %d have a working master, cluster_state is ok", allSlots)
	}
	if r.Moving > 0 {
		n.Warn("moves", fmt.Sprintf("%d slots are being moved", r.Moving),
			"wait until the move ends; if nothing moves them, run redis-cli --cluster fix ADDRESS",
			"a failover during the move makes their users unavailable until the slots are repaired")
	}
	for _, node := range r.Nodes {
		if slices.Contains(node.Flags, "fail") || slices.Contains(node.Flags, "fail?") {
			n.Fail(kind(node), "the cluster marks the node as "+strings.Join(node.Flags, ","),
				"start the node again, or run redis-cli --cluster del-node",
				"the shard has one copy less than intended")
		}
	}
	for _, node := range answering(r, false) {
		text := node.Settings["cluster-node-timeout"]
		ms, err := strconv.Atoi(text)
		switch timeout := time.Duration(ms) * time.Millisecond; {
		case err != nil:
			n.Skip(kind(node), "hides cluster-node-timeout")
		case timeout > longestNodeTimeout:
			n.Warn(kind(node), "cluster-node-timeout is "+timeout.String(), "set cluster-node-timeout 5000",
				"users of a lost master are unavailable for this time plus some seconds")
		case timeout < shortestNodeTimeout:
			n.Warn(kind(node), "cluster-node-timeout is "+timeout.String(), "set cluster-node-timeout 5000",
				"a server that is briefly busy is treated as lost")
		}
	}
}

// judgeSlots adds a finding if a Redis Cluster does not serve every slot, with the reason and the affected users.
func judgeSlots(n *notes, r *redisstore.Report) {
	seen := fmt.Sprintf("cluster_state is %s, and %d of %d slots have a working master", r.State, r.Covered, allSlots)
	change := "start the missing masters, or run redis-cli --cluster fix ADDRESS"
	why := "the users of slots without a working master are unavailable"
	var lost []string
	coverage, masters, working := map[string]bool{}, 0, 0
	for _, node := range r.Nodes {
		if value := node.Settings["cluster-require-full-coverage"]; value != "" {
			coverage[value] = true
		}
		if !node.Serving() {
			continue
		}
		masters++
		if !node.Flagged() {
			working++
			continue
		}
		lost = append(lost, node.Addr)
	}
	if len(lost) > 0 {
		seen += ": the cluster considers " + strings.Join(lost, ", ") + " lost, and no replica was promoted"
	}
	switch {
	case masters > 0 && 2*working <= masters:
		why = fmt.Sprintf("%d of %d masters work; without a majority the cluster serves no calls and promotes no "+
			"replica", working, masters)
	case r.State == "ok":
	case coverage["yes"]:
		change += "; set cluster-require-full-coverage to no on every server, so that the other shards continue"
		why = "cluster-require-full-coverage is yes: while one slot has no master, every server rejects all calls " +
			"(CLUSTERDOWN), and all users are unavailable"
	case len(coverage) == 0:
		why += "; all users are unavailable if cluster-require-full-coverage is yes, which this user may not read " +
			"(CONFIG GET)"
	}
	n.Fail("slots", seen, change, why)
}

func (s *servers) judgeVersions(n *notes, r *redisstore.Report) {
	versions := map[string][]string{}
	for _, node := range answering(r, false) {
		versions[node.Version()] = append(versions[node.Version()], node.Addr)
	}
	all := slices.Sorted(maps.Keys(versions))
	if len(all) > 1 {
		n.Warn("versions", "mixed: "+strings.Join(all, ", "), "upgrade all servers to one version, replicas first",
			"an older server cannot read append-only files and snapshots of a newer one")
	} else if len(all) == 1 {
		n.OK("versions", "%s on %d servers", all[0], len(versions[all[0]]))
	}
}

// judgeReplicas checks the number of replicas of each Redis master.
func (s *servers) judgeReplicas(n *notes, r *redisstore.Report) {
	acks := s.options.ReplicaAcks
	for _, master := range answering(r, true) {
		if r.Cluster && !master.Serving() {
			continue
		}
		working, all := 0, 0
		for _, node := range r.Nodes {
			if node.Master != master.Addr {
				continue
			}
			all++
			if node.Facts["master_link_status"] == "up" {
				working++
			} else if node.Facts != nil {
				n.Warn(kind(node), "the connection to its "+
					"master "+master.Addr+" is "+cmp.Or(node.Facts["master_link_status"],
					"unknown"), "check its log and repl-backlog-size", "the replica lacks data of its master and "+
					"confirms no writes")
			}
		}
		s.judgeCopies(n, master, working, all, acks)
	}
}

func (s *servers) judgeCopies(n *notes, master *redisstore.Node, working, all int, acks redisstore.Acks) {
	want := 1
	if fixed, err := strconv.Atoi(acks.String()); err == nil {
		want = fixed
	}
	seen := fmt.Sprintf("%d of %d replicas work, and replica_acks is %s", working, all, acks)
	switch {
	case acks.None():
		n.Warn(kind(master), seen, "set replica_acks: healthy, with two replicas for each master",
			"an allowed send is lost if its master is lost, and may then be sent again")
	case working < want:
		n.Fail(kind(master), seen, "restore a replica, or add one", "its users are unavailable until then")
	case all < 2:
		n.Warn(kind(master), seen, "give each master two replicas", "if one of the two copies is lost, its users "+
			"are unavailable until the copy is restored")
	case acks != redisstore.Healthy && all > want:
		n.Warn(kind(master), seen, "set replica_acks: healthy",
			"a send is lost if a replica without it is promoted")
	case working < all:
		n.Warn(kind(master), seen, "restore the other replicas", "after one more loss, its users are unavailable")
	default:
		n.OK(kind(master), "%s", seen)
	}
}

// judgeSpread adds a finding if, according to the addresses, one machine holds several copies of the same Redis data.
func (s *servers) judgeSpread(n *notes, r *redisstore.Report) {
	hosts, masters, count := map[string]bool{}, map[string]int{}, 0
	for _, node := range r.Nodes {
		host, _, _ := net.SplitHostPort(node.Addr)
		hosts[host] = true
		if node.Master == "" {
			masters[host]++
			count++
		}
	}
	if len(r.Nodes) > 1 && len(hosts) == 1 && onlyHere([]string{r.Nodes[0].Addr}) {
		n.Skip("", "all servers are on this machine, so they cannot be spread")
		return
	}
	shared := false
	for _, node := range r.Nodes {
		host, _, _ := net.SplitHostPort(node.Addr)
		if master, _, _ := net.SplitHostPort(node.Master); node.Master != "" && master == host {
			shared = true
			n.Warn(kind(node), "replica is on the host of its master "+node.Master,
				"move the replica to another machine, in another zone",
				"the loss of one machine destroys both copies, with "+
					"the sends of the shard")
		}
	}
	for host, of := range masters {
		if r.Cluster && count > 2 && 2*of > count {
			shared = true
			n.Warn(host, fmt.Sprintf("host has %d of %d masters", of, count), "spread the masters over three machines",
				"without a majority of its masters a cluster promotes no replica")
		}
	}
	if !shared {
		n.OK("", "%d servers on %d hosts", len(r.Nodes), len(hosts))
	}
}
