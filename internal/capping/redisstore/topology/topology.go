package topology

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Topology holds the routes: the Redis node of each partition of the keys. One goroutine refreshes the routes every
// second, and whenever a caller reports an outdated route.
type Topology struct {
	config  Config
	rules   *Rules
	scripts []string // sources of the Lua scripts
	cluster bool     // true: a Redis Cluster; false: one node holds every slot

	routes    []atomic.Pointer[Node]   // by partition; nil: no node holds its hash slot
	bars      []atomic.Pointer[Bar]    // by partition; nil: the records are complete, as far as known
	broken    []atomic.Pointer[Bar]    // by partition; nil: no open breach
	moves     []atomic.Pointer[move]   // by partition; nil: its hash slot is not moving
	looked    []atomic.Pointer[belief] // by partition: where its sentinel key was last checked; nil: nowhere
	signReads [][]any                  // by partition: the command that reads the sentinel key
	signLife  atomic.Int64             // TTL of sentinel keys in ms, as of the last check
	ledger    *ledger
	signed    atomic.Bool          // every sentinel key was created once, so a missing key was lost
	look      atomic.Pointer[Look] // the latest check, without the accepted partitions; nil: no check yet
	recalled  sync.Once
	points    points
	kept      [][]int // by partition: the other partitions whose points (latest times) its mark stores

	alarmed   chan struct{} // requests a check of the sentinel keys now
	kick      chan struct{}
	stop      context.CancelFunc
	living    context.Context // ends with Close
	die       context.CancelFunc
	wait      sync.WaitGroup // the goroutine that refreshes, and checks that calls requested
	refreshes atomic.Int64   // number of refreshes that ended in time

	mu       sync.Mutex
	nodes    map[string]*Node
	absent   map[string]int // by address: number of refreshes in a row that did not list the node
	problems []string       // findings of the last refresh
	down     bool
	closed   bool
	warnings []string          // findings of the latest examinations
	silent   map[string]string // by configured address: the warning that the server did not answer at start-up

	watchful bool // the start-up checks are over, and masters are examined regularly

	// Only the goroutine that refreshes the routes uses the following fields. Before the start of this goroutine,
	// Discover also uses them.
	failing    bool             // every asked node reports that the cluster is down
	members    map[string]bool  // ids of the nodes of our cluster
	strangers  map[string]error // by address: errors about nodes of another cluster
	master     *Node            // the current master outside a cluster
	replid     string           // the id of that master's replication history
	heirs      map[*Node]bool   // whether another configured server has replicated all data of the master
	tornBefore int              // number of torn slots at the last refresh
	logged     string           // error of the last refresh that was logged; "": none
	loggedAt   time.Time
}

// New returns a topology without routes. After New, the caller must call Discover, Check and Run.
func New(config Config) *Topology {
	n := len(config.Partitions)
	t := &Topology{
		config: config, rules: config.rules(), scripts: append(slices.Clone(config.Scripts), signSource),
		routes: make([]atomic.Pointer[Node], n), bars: make([]atomic.Pointer[Bar], n),
		moves:  make([]atomic.Pointer[move], n),
		broken: make([]atomic.Pointer[Bar], n), looked: make([]atomic.Pointer[belief], n),
		ledger:  newLedger(cmp.Or(config.UserPartitions, n)),
		alarmed: make(chan struct{}, 1), kick: make(chan struct{}, 1), stop: func() {},
		nodes: map[string]*Node{}, absent: map[string]int{},
		strangers: map[string]error{}, heirs: map[*Node]bool{},
	}
	t.living, t.die = context.WithCancel(context.Background())
	t.points.partitions, t.kept = make([]progress, n), keptBy(keepersOf(config.Partitions))
	for i := range config.Partitions {
		t.signReads = append(t.signReads, []any{"get", config.Partitions[i].signKey()})
	}
	return t
}

// The method Close closes every connection to a node and waits for all goroutines of the topology. The closed
// connections end all commands in flight. The method Close also closes the connections to nodes that a running refresh
// has found in the meantime.
func (t *Topology) Close() error {
	t.stop()
	t.die()
	err := t.disconnect()
	t.wait.Wait()
	return errors.Join(err, t.disconnect())
}

func (t *Topology) disconnect() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	var faults []error
	for addr, n := range t.nodes {
		faults = append(faults, n.client.Close())
		delete(t.nodes, addr)
	}
	return errors.Join(faults...)
}

// The method "beside" runs the function "work" on a new goroutine; Close waits for this goroutine. If the topology is
// already closed, "beside" does not run the function and returns false.
func (t *Topology) beside(work func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.wait.Go(work)
	return true
}

// DoubtSigns requests an early check of the partitions' sentinel keys (marker keys that reveal lost data). The
// goroutine that reads from the channel Doubts makes the check.
func (t *Topology) DoubtSigns() {
	select {
	case t.alarmed <- struct{}{}:
	default:
	}
}

// The method Doubts returns the channel of DoubtSigns. A value in this channel is a request to check the sentinel keys
// (marker keys that reveal lost data) immediately.
func (t *Topology) Doubts() <-chan struct{} { return t.alarmed }

// Route returns the node that serves the partition, or nil if no node holds its hash slot.
func (t *Topology) Route(partition int) *Node { return t.routes[partition].Load() }

// The method Redirect sends later commands for the partition to the node at addr. The argument "said" of Redirect is
// the node whose reply names the node at addr as the owner of the hash slot.
func (t *Topology) Redirect(partition int, said *Node, addr string) {
	t.routes[partition].Store(t.node(said.resolve(addr)))
}

// The method Named returns the node at an address from a reply of the node "by".
func (t *Topology) Named(by *Node, addr string) *Node { return t.node(by.resolve(addr)) }

// Nodes returns all nodes that the topology knows, including replicas and masters without slots.
func (t *Topology) Nodes() []*Node {
	t.mu.Lock()
	defer t.mu.Unlock()
	nodes := make([]*Node, 0, len(t.nodes))
	for _, n := range t.nodes {
		nodes = append(nodes, n)
	}
	return nodes
}

// The method Knows reports whether the node is still one of the servers in the topology.
func (t *Topology) Knows(n *Node) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.nodes[n.addr] == n
}

// The method "node" returns the Node at addr, and creates the Node for a new address.
func (t *Topology) node(addr string) *Node {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.nodes[addr]
	if n == nil {
		n = t.newNode(addr)
		t.nodes[addr] = n
	}
	return n
}

// Masters returns the nodes that hold partitions, sorted by the first partition of each node.
func (t *Topology) Masters() []*Node {
	var masters []*Node
	for p := range t.routes {
		if n := t.Route(p); n != nil && !slices.Contains(masters, n) {
			masters = append(masters, n)
		}
	}
	return masters
}

// The method Unserved returns the number of partitions on hash slots that no node serves.
func (t *Topology) Unserved() (n int) {
	for p := range t.routes {
		if t.Route(p) == nil {
			n++
		}
	}
	return n
}

// closeUnlisted closes connections to nodes that have been missing in many refreshes in a row.
func (t *Topology) closeUnlisted(listed map[string]bool) {
	for _, addr := range t.config.Addrs {
		listed[addr] = true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for addr, n := range t.nodes {
		if listed[addr] {
			delete(t.absent, addr)
			continue
		}
		if t.absent[addr]++; t.absent[addr] > forgetAfter {
			_ = n.client.Close()
			delete(t.nodes, addr)
			delete(t.absent, addr)
		}
	}
}
