package redisstore

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"capper/internal/capping/redisstore/script"
	"capper/internal/capping/redisstore/topology"
)

// A Report is the result of Survey, which examines all Redis servers of a store.
type Report struct {
	Cluster bool
	Nodes   []*Node // masters first, then sorted by address
	// Silent holds the configured addresses from which no server answered, with the error for each address.
	Silent map[string]error
	// Hint is a text about the reason why no server answers; "": the reason is not known.
	Hint string
	// State is the cluster_state of the first node that answers. Covered is the number of the 16,384 hash slots whose
	// master the cluster does not flag as failed. Moving is the number of slots that are being moved. State, Covered
	// and Moving are empty outside a cluster.
	State           string
	Covered, Moving int
	// Made is true if the namespace has a store. MadeErr is the reason why the survey could not find out whether the
	// store exists.
	Made    bool
	MadeErr error
	// Broken lists the promises that servers have broken and that no operator has accepted yet.
	Broken []topology.BrokenPromise

	mu     sync.Mutex
	ledger []map[string]string // copies of the ledger of broken promises
}

// Node is one Redis server of a survey.
type Node struct {
	Addr   string
	Master string   // address of the node's master; "": the node is a master
	Flags  []string // the cluster's flags of the node
	Err    error    // the survey failed on this node; all other results are empty

	Facts    topology.Facts    // the replies of INFO and CLUSTER INFO
	Settings map[string]string // server settings by name; nil: the user may not run CONFIG GET
	Trips    []time.Duration   // durations of round trips, in ascending order
	// Off is the difference between the server's clock and this machine's clock; a positive Off means that the server
	// is ahead. Sure is the uncertainty of Off.
	Off, Sure time.Duration
	// The embedded field Survey holds the findings of the checks that a start runs. Lacking lists missing rights,
	// Refusals lists settings that break a promise, and Warnings lists settings that cost memory or cannot be read.
	topology.Survey
	// Certificates is the TLS certificate chain of the server. Distrust is the reason why this machine does not trust
	// the server's certificate chain. Away is the connection error that prevented the read of the certificate chain.
	Certificates []*x509.Certificate
	Distrust     error
	Away         error

	member topology.Member
}

// Version returns the name and the version of the server program, such as "Redis 7.2.4" or "Valkey 8.0.1".
func (n *Node) Version() string {
	if v := n.Facts["valkey_version"]; v != "" {
		return "Valkey " + v
	}
	return "Redis " + n.Facts["redis_version"]
}

// The type "survey" holds the state of one call of Survey.
type survey struct {
	config   Config
	options  topology.Options
	keyspace script.Keyspace
	prefixes []string
}

// The constant "attempt" is the time limit for each request of a survey to a server.
const attempt = 3 * time.Second

// The function Survey examines all servers in parallel, within the deadline of the context. Survey returns an error
// only if the configuration is wrong. The Report holds the errors of single servers.
func Survey(ctx context.Context, config Config) (*Report, error) {
	if len(config.Addrs) == 0 {
		return nil, errors.New("addrs: must contain the host:port of at least one Redis server")
	}
	config.Namespace = cmp.Or(config.Namespace, "fc")
	if config.Clock == nil {
		config.Clock = time.Now
	}
	keyspace, _ := config.IDs.layout()
	s := &survey{config: config, keyspace: keyspace, prefixes: keyspace.Prefixes(config.Namespace)}
	s.options = topology.Options{
		Addrs: config.Addrs, SentinelMaster: config.SentinelMaster, Username: config.Username,
		Password: config.Password,
		TLS:      config.TLS, Credentials: config.Credentials, AttemptTimeout: attempt, Connections: 2, Dial: dial,
	}
	r := &Report{Silent: map[string]error{}}
	s.find(ctx, r)
	var asked sync.WaitGroup
	for _, n := range r.Nodes {
		asked.Go(func() { s.look(ctx, r, n) })
	}
	asked.Wait()
	r.Broken = topology.BrokenIn(keyspace.Partitions, r.ledger...)
	if len(r.Nodes) == 0 {
		r.Hint, _ = s.options.Diagnose(ctx)
	}
	slices.SortStableFunc(r.Nodes, func(a, b *Node) int {
		if (a.Master == "") != (b.Master == "") {
			if a.Master == "" {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Addr, b.Addr)
	})
	return r, nil
}

// The method "find" adds nodes to the report: the servers at the configured addresses, and all nodes that these servers
// list.
func (s *survey) find(ctx context.Context, r *Report) {
	type answer struct {
		nodes   []*Node
		cluster topology.Facts
		err     error
	}
	addrs := s.config.Addrs
	if s.config.SentinelMaster != "" {
		addrs = addrs[:1] // the Redis client asks all Sentinels by itself
	}
	answers := make([]answer, len(addrs))
	var asked sync.WaitGroup
	for i, addr := range addrs {
		asked.Go(func() { answers[i].nodes, answers[i].cluster, answers[i].err = s.neighbours(ctx, addr) })
	}
	asked.Wait()
	known := map[string]bool{}
	for i, a := range answers {
		if a.err != nil {
			r.Silent[addrs[i]] = a.err
			continue
		}
		if a.cluster != nil && (r.State == "" || r.State != "ok") {
			r.Cluster, r.State = true, a.cluster["cluster_state"]
			r.Covered, r.Moving = covered(a.nodes)
		}
		for _, n := range a.nodes {
			if !known[n.Addr] {
				known[n.Addr] = true
				r.Nodes = append(r.Nodes, n)
			}
		}
	}
}

// The function "covered" counts the hash slots with a working master, and the hash slots that the cluster is moving.
func covered(nodes []*Node) (slots, moving int) {
	for _, n := range nodes {
		moving += n.member.Moving
		if n.Flagged() {
			continue
		}
		for _, r := range n.member.Slots {
			slots += r[1] - r[0] + 1
		}
	}
	return slots, moving
}

// The method "client" returns a Redis client for the address. If the address is the result of the method "sentinel",
// the client connects to the master that Redis Sentinel watches.
func (s *survey) client(addr string) *redis.Client {
	if addr == s.sentinel() {
		return s.options.Client(addr, &topology.RoundTrips{}, nil)
	}
	return s.options.DirectClient(addr, &topology.RoundTrips{}, nil)
}

// The method "sentinel" returns "sentinel:" and the name of the master that Redis Sentinel watches, or "" without
// Sentinel.
func (s *survey) sentinel() string {
	if s.config.SentinelMaster == "" {
		return ""
	}
	return "sentinel:" + s.config.SentinelMaster
}

// The method "neighbours" returns the server at the address, and all nodes that this server lists.
func (s *survey) neighbours(ctx context.Context, addr string) (nodes []*Node, cluster topology.Facts, err error) {
	if name := s.sentinel(); name != "" {
		addr = name
	}
	client := s.client(addr)
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(ctx, 2*attempt)
	defer cancel()
	text, err := client.Info(ctx, "everything").Result()
	if err != nil {
		return nil, nil, err
	}
	facts := topology.ParseInfo(text)
	if facts["cluster_enabled"] != "1" {
		return besides(addr, facts), nil, nil
	}
	pipe := client.Pipeline()
	state, list := pipe.ClusterInfo(ctx), pipe.ClusterNodes(ctx)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, nil, err
	}
	return clustered(topology.Members(list.Val(), addr)), topology.ParseInfo(state.Val()), nil
}

// The function "besides" returns a server outside a cluster together with its replicas.
func besides(addr string, facts topology.Facts) []*Node {
	own := &Node{Addr: addr}
	if facts["role"] == "slave" {
		own.Master = net.JoinHostPort(facts["master_host"], facts["master_port"])
		return []*Node{own}
	}
	nodes := []*Node{own}
	for _, replica := range topology.FedAddrs(facts) {
		nodes = append(nodes, &Node{Addr: replica, Master: addr})
	}
	return nodes
}

// The function "clustered" returns the listed nodes that take part in the cluster.
func clustered(members []topology.Member) (nodes []*Node) {
	addrs := map[string]string{}
	for _, m := range members {
		addrs[m.ID] = m.Addr
	}
	for _, m := range members {
		n := &Node{Addr: m.Addr, Master: addrs[m.Master], Flags: m.Flags, member: m}
		if slices.Contains(m.Flags, "handshake") || slices.Contains(m.Flags, "noaddr") {
			continue
		}
		if n.Master == "" && m.Master != "" {
			n.Master = m.Master
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// The method "trial" returns a key and settings for a test of the Redis user's rights. Open makes the same test as the
// survey.
func (s *survey) trial(r *Report, n *Node) topology.Trial {
	trial := topology.Trial{Who: "node " + n.Addr, Key: s.prefixes[0] + "RIGHTS", Cluster: r.Cluster}
	if n.Master != "" {
		return trial
	}
	for p, prefix := range s.prefixes {
		if !r.Cluster || n.member.Serves(s.keyspace.Slot(p)) {
			trial.Key, trial.Held = prefix+"RIGHTS", true
			break
		}
	}
	return trial
}

// The method "rules" returns the rules by which Open accepts or rejects servers.
func (s *survey) rules() *topology.Rules {
	return &topology.Rules{
		Namespace: s.config.Namespace, Username: s.config.Username, HashFields: s.keyspace.HashFields(),
		Unreplicated: s.config.ReplicaAcks.None(), CountedReplicas: s.config.ReplicaAcks == topology.Healthy,
		WithoutAppendOnly: s.config.WithoutAppendOnly, Clock: s.config.Clock, ClockApart: true,
	}
}

// lookAtLedger reads the copies of the ledger (list of broken promises) that are on the node.
func (s *survey) lookAtLedger(ctx context.Context, r *Report, n *Node, client *redis.Client) {
	k := s.keyspace
	for _, p := range ledgerCopies(k) {
		if n.Master != "" || r.Cluster && !n.member.Serves(k.Slot(p)) {
			continue
		}
		prefix := fmt.Sprintf("%s:{%s}:", s.config.Namespace, script.FormatTag)
		if p < len(s.prefixes) {
			prefix = s.prefixes[p]
		}
		if copied, err := client.HGetAll(ctx, topology.LedgerKey(prefix)).Result(); err == nil {
			r.mu.Lock()
			r.ledger = append(r.ledger, copied)
			r.mu.Unlock()
		}
	}
}

// lookAtStore checks whether a store exists: it reads the format marker (value that names the version of the stored
// format) from the node that serves the marker's key.
func (s *survey) lookAtStore(ctx context.Context, r *Report, n *Node, client *redis.Client) {
	if n.Master != "" || r.Cluster && !n.member.Serves(s.keyspace.Slot(s.keyspace.FormatPartition())) {
		return
	}
	marker, err := client.Get(ctx, fmt.Sprintf("%s:{%s}", s.config.Namespace, script.FormatTag)).Result()
	r.Made = marker != ""
	if err != nil && !errors.Is(err, redis.Nil) {
		r.MadeErr = err
	}
}
