package redisstore

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"capper/internal/capping/redisstore/script"
)

const (
	refreshEvery  = time.Second
	refreshPause  = 50 * time.Millisecond // between refreshes that were asked for
	refreshBudget = 500 * time.Millisecond
	logPause      = 5 * time.Second
	forgetAfter   = 60 // refreshes after which a node that nobody lists is closed
)

// topology knows which node holds which partition. One goroutine refreshes it
// every second, and whenever a call learned that it is out of date.
type topology struct {
	config  *Config
	layout  script.Keyspace
	scripts scripts
	cluster bool // else one node holds every slot

	prefixes []string // of keys, by partition

	routes []atomic.Pointer[node]    // by partition, then of the format record; nil: no node holds the slot
	bars   []atomic.Pointer[bar]     // the same; nil: what is recorded there is whole, as far as known
	parted []atomic.Pointer[parting] // the same; nil: the slot is not being moved
	signs  [][]any                   // the same: the command that reads its sign
	signed atomic.Bool               // every sign has been made: one that is missing was lost

	longest atomic.Int64  // milliseconds: the longest retention in force, as far as known
	alarmed chan struct{} // something is to be looked at now
	kick    chan struct{}
	stop    context.CancelFunc
	wait    sync.WaitGroup // refresher and lanes

	mu       sync.Mutex
	nodes    map[string]*node
	absent   map[string]int // by address: refreshes without the node
	problems []string       // what the last refresh found
	down     bool

	watchful bool // the start-up checks are over: masters are vetted

	// Of the refresher, and of Open before it:
	members    map[string]bool  // ids of the nodes of our cluster
	strangers  map[string]error // by address: nodes that are of another cluster
	master     *node            // of servers that are no cluster
	replid     string           // its history's id
	heirs      map[*node]bool   // its replicas among the addresses; false: who is a master beside it
	tornBefore int              // slots that were torn
	logged     string           // the last refresh's error in the log; "": none
	loggedAt   time.Time
}

func newTopology(config *Config, l script.Keyspace, s scripts) *topology {
	return &topology{
		config: config, layout: l, scripts: s, prefixes: l.Prefixes(config.Namespace),
		routes: make([]atomic.Pointer[node], l.Partitions+1),
		bars:   make([]atomic.Pointer[bar], l.Partitions+1), parted: make([]atomic.Pointer[parting], l.Partitions+1), alarmed: make(chan struct{}, 1),
		kick: make(chan struct{}, 1), stop: func() {},
		nodes: map[string]*node{}, absent: map[string]int{},
		strangers: map[string]error{}, heirs: map[*node]bool{},
	}
}

// run refreshes until close.
func (t *topology) run() {
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
			pause(ctx, refreshPause)
		}
	}()
}

// log says what a refresh ended with when it is something new: one that fails
// is repeated many times a second.
func (t *topology) log(err error) {
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

// close closes every connection, which ends what is in flight, and waits for
// all goroutines. A refresh that was under way may have found more nodes.
func (t *topology) close() error {
	t.stop()
	err := t.disconnect()
	t.wait.Wait()
	return errors.Join(err, t.disconnect())
}

func (t *topology) disconnect() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var faults []error
	for addr, n := range t.nodes {
		faults = append(faults, n.client.Close())
		delete(t.nodes, addr)
	}
	return errors.Join(faults...)
}

// outdated asks for a refresh soon.
func (t *topology) outdated() {
	select {
	case t.kick <- struct{}{}:
	default:
	}
}

// alarm asks for a look at the records and signs soon.
func (t *topology) alarm() {
	select {
	case t.alarmed <- struct{}{}:
	default:
	}
}

func (t *topology) route(partition int) *node { return t.routes[partition].Load() }

// moved notes that addr holds the partition's slot, as a node said.
func (t *topology) moved(partition int, addr string) {
	t.routes[partition].Store(t.node(addr))
	t.outdated()
}

func (t *topology) all() []*node {
	t.mu.Lock()
	defer t.mu.Unlock()
	nodes := make([]*node, 0, len(t.nodes))
	for _, n := range t.nodes {
		nodes = append(nodes, n)
	}
	return nodes
}

// node is the node at addr, new when it is not known.
func (t *topology) node(addr string) *node {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.nodes[addr]
	if n == nil {
		n = &node{addr: addr, top: t}
		n.client = newClient(t.config, addr, &n.trips)
		n.acks.Store(unknownAcks)
		t.nodes[addr] = n
	}
	return n
}

// refresh learns the routes and counts replicas.
func (t *topology) refresh(ctx context.Context) error {
	err := t.relearn(ctx)
	ctx, cancel := context.WithTimeout(ctx, t.budget())
	defer cancel()
	t.examine(ctx, err)
	return err
}

// budget is for each of the two parts of a refresh.
func (t *topology) budget() time.Duration {
	return t.farthest().patience(refreshBudget, t.config.AttemptTimeout)
}

// attempt is for asking any server once.
func (t *topology) attempt() time.Duration {
	return t.farthest().patience(t.config.AttemptTimeout, t.config.AttemptTimeout)
}

// farthest is the round trips to the node that is furthest away.
func (t *topology) farthest() *roundTrips {
	farthest := &roundTrips{}
	for _, n := range t.all() {
		if n.trips.time() > farthest.time() {
			farthest = &n.trips
		}
	}
	return farthest
}

func (t *topology) relearn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.budget())
	defer cancel()
	if t.cluster {
		return t.refreshCluster(ctx)
	}
	return t.refreshServers(ctx)
}

// forget closes nodes that have not been listed for long.
func (t *topology) forget(listed map[string]bool) {
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

// facts are the lines of INFO and its like.
type facts map[string]string

func parseInfo(text string) facts {
	f := facts{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			f[name] = value
		}
	}
	return f
}
