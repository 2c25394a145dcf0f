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

// Topology knows which node holds which partition. One goroutine refreshes it
// every second, and whenever somebody learned that it is out of date.
type Topology struct {
	config  Config
	rules   *Rules
	scripts []string // sources
	cluster bool     // else one node holds every slot

	routes    []atomic.Pointer[Node]   // by partition; nil: no node holds the slot
	bars      []atomic.Pointer[Bar]    // the same; nil: what is recorded there is whole, as far as known
	broken    []atomic.Pointer[Bar]    // the same; nil: no server did what drops logs, or it was accepted
	moves     []atomic.Pointer[move]   // the same; nil: the slot is not being moved
	looked    []atomic.Pointer[belief] // the same: where its sign was looked at last; nil: nowhere
	signReads [][]any                  // the same: the command that reads its sign
	signLife  atomic.Int64             // how long signs last, in ms, since they were last looked at
	ledger    *ledger
	signed    atomic.Bool          // every sign has been made: one that is missing was lost
	look      atomic.Pointer[Look] // the latest one, without what was accepted; nil: none yet
	recalled  sync.Once
	points    points
	kept      [][]int // by partition: those whose points its mark keeps

	alarmed   chan struct{} // signs are to be looked at now
	kick      chan struct{}
	stop      context.CancelFunc
	living    context.Context // ends with Close
	die       context.CancelFunc
	wait      sync.WaitGroup // refresher, and looks that calls asked for
	refreshes atomic.Int64   // that have ended in time

	mu       sync.Mutex
	nodes    map[string]*Node
	absent   map[string]int // by address: refreshes without the node
	problems []string       // what the last refresh found
	down     bool
	closed   bool
	warnings []string          // what the latest examinations found
	silent   map[string]string // by address of the configuration: the warning that it gave the start no answer

	watchful bool // the start-up checks are over: masters are vetted

	// Of the refresher, and of Open before it:
	failing    bool             // every node that was asked says that its cluster does not serve
	members    map[string]bool  // ids of the nodes of our cluster
	strangers  map[string]error // by address: nodes that are of another cluster
	master     *Node            // of servers outside a cluster
	replid     string           // its history's id
	heirs      map[*Node]bool   // whether a server among the addresses has all that it has
	tornBefore int              // slots that were torn
	logged     string           // the last refresh's error in the log; "": none
	loggedAt   time.Time
}

// New is a topology that knows nothing yet: Discover, Check and Run come next.
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

// Close closes every connection, which ends what is in flight, and waits for
// all goroutines. A refresh that was under way may have found more nodes.
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

// beside does work on a goroutine that Close waits for. False: it is closed.
func (t *Topology) beside(work func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.wait.Go(work)
	return true
}

// DoubtSigns asks for a look at the signs soon, of whoever listens to Doubts.
func (t *Topology) DoubtSigns() {
	select {
	case t.alarmed <- struct{}{}:
	default:
	}
}

// Doubts tells that signs should be looked at now.
func (t *Topology) Doubts() <-chan struct{} { return t.alarmed }

// Route is the node that holds the partition; nil when none does.
func (t *Topology) Route(partition int) *Node { return t.routes[partition].Load() }

// Redirect notes that addr holds the partition's slot, as the node said.
func (t *Topology) Redirect(partition int, said *Node, addr string) {
	t.routes[partition].Store(t.node(said.resolve(addr)))
}

// Named is the node that the other one names by the address.
func (t *Topology) Named(by *Node, addr string) *Node { return t.node(by.resolve(addr)) }

// Nodes are all that are known, replicas and others too.
func (t *Topology) Nodes() []*Node {
	t.mu.Lock()
	defer t.mu.Unlock()
	nodes := make([]*Node, 0, len(t.nodes))
	for _, n := range t.nodes {
		nodes = append(nodes, n)
	}
	return nodes
}

// Knows reports whether the node is among them still.
func (t *Topology) Knows(n *Node) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.nodes[n.addr] == n
}

// node is the node at addr, new when it is not known.
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

// Masters are the nodes that hold partitions, in order of the first.
func (t *Topology) Masters() []*Node {
	var masters []*Node
	for p := range t.routes {
		if n := t.Route(p); n != nil && !slices.Contains(masters, n) {
			masters = append(masters, n)
		}
	}
	return masters
}

// Unserved is how many partitions are on slots that no node serves.
func (t *Topology) Unserved() (n int) {
	for p := range t.routes {
		if t.Route(p) == nil {
			n++
		}
	}
	return n
}

// closeUnlisted closes nodes that have not been listed for long.
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
