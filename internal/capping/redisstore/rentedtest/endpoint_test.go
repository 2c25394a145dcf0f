//go:build storms

package rentedtest_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore"
	"capper/internal/capping/redisstore/rentedtest"
	"capper/internal/capping/storetest"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// TestAClusterOnIPv6 checks that the store works with a cluster on IPv6, whose nodes list addresses
// without brackets.
func TestAClusterOnIPv6(t *testing.T) {
	t.Parallel()
	c := testcluster.Start(t, testcluster.Options{Replicas: 1, Host: "::1"})
	require.Contains(t, c.Addrs[0], "[::1]:")
	s := open(t, redisstore.Config{Addrs: c.Addrs[:1]})
	decides(t, s)
	require.NoError(t, admin(t, c.Addrs[3]).ClusterFailover(t.Context()).Err())
	testkit.Eventually(t, func() bool { return len(decide(t, s, "later")) == 1 })
	stillDecides(t, s)
	storetest.IsOK(t, s)
}

// TestAServerOnIPv6 checks that the store works with a master on IPv6, and with a host name that
// has IPv4 and IPv6 addresses.
func TestAServerOnIPv6(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{Replicas: 1, Host: "::1"})
	decides(t, open(t, redisstore.Config{Addrs: c.Addrs}))
}

// place is a cluster whose nodes are behind gateways. The gateway of node i listens at ips[i], and
// all gateways use the same port, as with hosted Redis.
type place struct {
	*testcluster.Cluster
	port     string
	gateways []*rentedtest.Gateway
}

// rent starts a cluster of 3 masters and 3 replicas behind gateways at 127.0.NET.1 to 127.0.NET.6.
// The nodes also listen for each other on the next network, so the cluster can move there.
func rent(t *testing.T, net byte) *place {
	t.Helper()
	bind := "bind 127.0.0.1 " + strings.Join(append(ips(net), ips(net+1)...), " ")
	p := &place{Cluster: testcluster.Start(t, testcluster.Options{Replicas: 1, Settings: []string{bind}})}
	for i := range p.Addrs {
		p.open(t, i, ips(net)[i])
	}
	return p
}

func ips(net byte) (all []string) {
	for i := range 6 {
		all = append(all, fmt.Sprintf("127.0.%d.%d", net, i+1))
	}
	return all
}

// open starts the gateway of node i at the address, and makes the node announce that address.
func (p *place) open(t *testing.T, i int, ip string) {
	t.Helper()
	if p.port == "" {
		p.port = "0"
	}
	g, err := rentedtest.NewGateway(ip+":"+p.port, p.Addrs[i])
	require.NoError(t, err)
	t.Cleanup(g.Close)
	_, p.port, _ = net.SplitHostPort(g.Addr())
	p.gateways = append(p.gateways, g)
	set(t, p.Addrs[i], "cluster-announce-port", p.port)
	set(t, p.Addrs[i], "cluster-announce-ip", ip)
}

// known waits until every node lists the wanted addresses of the nodes.
func (p *place) known(t *testing.T, wants ...string) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		for _, addr := range p.Addrs {
			text, err := admin(t, addr).ClusterNodes(t.Context()).Result()
			for _, want := range wants {
				if err != nil || !strings.Contains(text, want) {
					return false
				}
			}
		}
		return true
	})
}

// TestOneNameForAClusterThatMoves checks that the store works through one DNS name for nodes behind
// translated addresses. It follows when all nodes are replaced one by one and the name leads to the
// new addresses.
func TestOneNameForAClusterThatMoves(t *testing.T) {
	t.Parallel()
	p := rent(t, 41)
	p.known(t, ips(41)...)
	const host = "clustercfg.rented.test"
	names.Point(host, ips(41)[:3]...)
	config := redisstore.Config{Addrs: []string{host + ":" + p.port}}
	s := open(t, config)
	decides(t, s)

	names.Point(host, ips(42)...)
	for i := range p.Addrs {
		p.gateways[i].Close()
		p.open(t, i, ips(42)[i])
		p.known(t, ips(42)[i])
		testkit.Eventually(t, func() bool { return decide(t, s, "later")[capping.Unavailable] == 0 })
	}
	stillDecides(t, s)
	storetest.IsOK(t, s)
	stillDecides(t, open(t, config))

	// One port leads to all nodes, and each node lists the other nodes.
	any, err := rentedtest.NewGateway("127.0.0.1:0", p.Addrs...)
	require.NoError(t, err)
	t.Cleanup(any.Close)
	stillDecides(t, open(t, redisstore.Config{Addrs: []string{any.Addr()}}))
}

// TestNodesThatAnnounceNames checks that the store follows nodes that announce DNS names, even when
// a name gets another address.
func TestNodesThatAnnounceNames(t *testing.T) {
	t.Parallel()
	p := rent(t, 43)
	p.known(t, ips(43)...)
	name := func(i int) string { return fmt.Sprintf("node%d.rented.test", i+1) }
	for i, addr := range p.Addrs {
		names.Point(name(i), ips(43)[i])
		set(t, addr, "cluster-announce-hostname", name(i))
		set(t, addr, "cluster-preferred-endpoint-type", "hostname")
	}
	p.known(t, name(0), name(1), name(2), name(3), name(4), name(5))
	s := open(t, redisstore.Config{Addrs: []string{name(0) + ":" + p.port}})
	decides(t, s)
	require.NotZero(t, names.Asked(name(1)), "by its name")

	for i := range p.Addrs {
		p.gateways[i].Close()
		names.Point(name(i), ips(44)[i])
		p.open(t, i, ips(44)[i])
	}
	stillDecides(t, s)
	storetest.IsOK(t, s)
}

// TestNodesThatCannotBeReachedAreNamed checks that an error names the announced nodes that the
// store cannot reach.
func TestNodesThatCannotBeReachedAreNamed(t *testing.T) {
	t.Parallel()
	p := rent(t, 51)
	p.known(t, ips(51)...)
	entry := p.Addrs[0]
	for _, g := range p.gateways {
		g.Close()
	}
	text, hint := refused(t, redisstore.Config{Addrs: []string{entry}, Timeout: 5 * time.Second,
		AttemptTimeout: 400 * time.Millisecond})
	require.Contains(t, text, ips(51)[1]+":"+p.port)
	require.Contains(t, hint, "capper cannot reach the addresses that the cluster announces")
	require.Contains(t, hint, "cluster-announce")
}

// TestNodesThatCannotBeToldApartAreRefused checks that the store refuses three masters behind one
// name and one port, because nothing distinguishes them.
func TestNodesThatCannotBeToldApartAreRefused(t *testing.T) {
	t.Parallel()
	p := rent(t, 53)
	p.known(t, ips(53)...)
	for _, addr := range p.Addrs {
		set(t, addr, "cluster-preferred-endpoint-type", "unknown-endpoint")
	}
	const host = "one.rented.test"
	names.Point(host, ips(53)[:3]...)
	text, _ := refused(t, redisstore.Config{Addrs: []string{host + ":" + p.port}, Timeout: 5 * time.Second})
	require.Contains(t, text, "several nodes have the address "+host+":"+p.port)
	require.Contains(t, text, "cluster-preferred-endpoint-type")
}
