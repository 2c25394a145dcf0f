package topology

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"capper/internal/capping/redisstore/topology/connect"
	"capper/internal/capping/redisstore/topology/examine"
)

const (
	refreshEvery  = time.Second
	refreshPause  = 50 * time.Millisecond // between refreshes that were asked for
	refreshBudget = 500 * time.Millisecond
	logPause      = 5 * time.Second
	forgetAfter   = 60 // refreshes after which a node that nobody lists is closed
)

// Topology knows which node holds which partition. One goroutine refreshes it
// every second, and whenever somebody learned that it is out of date.
type Topology struct {
	config  Config
	rules   *examine.Rules
	scripts []string // sources
	cluster bool     // else one node holds every slot

	routes    []atomic.Pointer[Node]    // by partition; nil: no node holds the slot
	bars      []atomic.Pointer[Bar]     // the same; nil: what is recorded there is whole, as far as known
	parted    []atomic.Pointer[parting] // the same; nil: the slot is not being moved
	signReads [][]any                   // the same: the command that reads its sign
	signed    atomic.Bool               // every sign has been made: one that is missing was lost

	alarmed   chan struct{} // signs are to be looked at now
	kick      chan struct{}
	stop      context.CancelFunc
	wait      sync.WaitGroup // refresher
	refreshes atomic.Int64   // that have ended

	mu       sync.Mutex
	nodes    map[string]*Node
	absent   map[string]int // by address: refreshes without the node
	problems []string       // what the last refresh found
	down     bool

	watchful bool // the start-up checks are over: masters are vetted

	// Of the refresher, and of Open before it:
	members    map[string]bool  // ids of the nodes of our cluster
	strangers  map[string]error // by address: nodes that are of another cluster
	master     *Node            // of servers that are no cluster
	replid     string           // its history's id
	heirs      map[*Node]bool   // its replicas among the addresses; false: who is a master beside it
	tornBefore int              // slots that were torn
	logged     string           // the last refresh's error in the log; "": none
	loggedAt   time.Time
}

// New is a topology that knows nothing yet: Discover, Check and Run come next.
func New(config Config) *Topology {
	n := len(config.Partitions)
	t := &Topology{
		config: config, rules: config.rules(), scripts: append(slices.Clone(config.Scripts), signSource),
		routes: make([]atomic.Pointer[Node], n), bars: make([]atomic.Pointer[Bar], n), parted: make([]atomic.Pointer[parting], n),
		alarmed: make(chan struct{}, 1), kick: make(chan struct{}, 1), stop: func() {},
		nodes: map[string]*Node{}, absent: map[string]int{},
		strangers: map[string]error{}, heirs: map[*Node]bool{},
	}
	for i := range config.Partitions {
		t.signReads = append(t.signReads, []any{"get", config.Partitions[i].signKey()})
	}
	return t
}

// Run refreshes until Close.
func (t *Topology) Run() {
	ctx, cancel := context.WithCancel(context.Background())
	t.stop = cancel
	t.wait.Add(1)
	go func() {
		defer t.wait.Done()
		ticker := time.NewTicker(refreshEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			case <-t.kick:
			}
			if err := t.refresh(ctx); ctx.Err() == nil {
				t.log(err)
			}
			t.refreshes.Add(1)
			pause(ctx, refreshPause)
		}
	}()
}

// log says what a refresh ended with when it is something new: one that fails
// is repeated many times a second.
func (t *Topology) log(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch {
	case text == t.logged:
	case err == nil:
		t.config.Logger.Info("the Redis topology is known again")
	case time.Since(t.loggedAt) > logPause: // the text of time-outs changes
		t.config.Logger.Warn("refresh of the Redis topology", "error", err)
		t.loggedAt = time.Now()
	default:
		return
	}
	t.logged = text
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// Close closes every connection, which ends what is in flight, and waits for
// all goroutines. A refresh that was under way may have found more nodes.
func (t *Topology) Close() error {
	t.stop()
	err := t.disconnect()
	t.wait.Wait()
	return errors.Join(err, t.disconnect())
}

func (t *Topology) disconnect() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var faults []error
	for addr, n := range t.nodes {
		faults = append(faults, n.client.Close())
		delete(t.nodes, addr)
	}
	return errors.Join(faults...)
}

// Refreshes is how many refreshes have ended since Run.
func (t *Topology) Refreshes() int64 { return t.refreshes.Load() }

// RefreshSoon asks for a refresh.
func (t *Topology) RefreshSoon() {
	select {
	case t.kick <- struct{}{}:
	default:
	}
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

// refresh learns the routes and counts replicas.
func (t *Topology) refresh(ctx context.Context) error {
	err := t.relearn(ctx)
	ctx, cancel := context.WithTimeout(ctx, t.budget())
	defer cancel()
	t.examine(ctx, err)
	return err
}

// budget is for each of the two parts of a refresh.
func (t *Topology) budget() time.Duration {
	return t.farthest().Patience(refreshBudget, t.config.AttemptTimeout)
}

// attempt is for asking any server once.
func (t *Topology) attempt() time.Duration {
	return t.farthest().Patience(t.config.AttemptTimeout, t.config.AttemptTimeout)
}

// LongestAttempt is the most that an attempt takes, however far the server is.
func (t *Topology) LongestAttempt() time.Duration { return t.config.LongestAttempt() }

// farthest is the round trips to the node that is furthest away.
func (t *Topology) farthest() *connect.RoundTrips {
	farthest := &connect.RoundTrips{}
	for _, n := range t.Nodes() {
		if n.trips.Time() > farthest.Time() {
			farthest = &n.trips
		}
	}
	return farthest
}

func (t *Topology) relearn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.budget())
	defer cancel()
	if t.cluster {
		return t.refreshCluster(ctx)
	}
	return t.refreshServers(ctx)
}

// forget closes nodes that have not been listed for long.
func (t *Topology) forget(listed map[string]bool) {
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
