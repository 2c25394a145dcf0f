package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	refreshEvery  = time.Second
	refreshPause  = 50 * time.Millisecond // between refreshes that were asked for
	refreshBudget = 500 * time.Millisecond
	refreshAsks   = 5  // nodes asked for their view at once
	forgetAfter   = 60 // refreshes after which a node that nobody lists is closed
)

// topology knows which node holds which partition. One goroutine refreshes it
// every second, and whenever a call learned that it is out of date.
type topology struct {
	config  *Config
	layout  layout
	scripts scripts
	cluster bool // else one node holds every slot

	routes []atomic.Pointer[node] // by partition, then of the format record; nil: no node holds the slot
	kick   chan struct{}
	stop   context.CancelFunc
	wait   sync.WaitGroup // refresher and lanes

	mu       sync.Mutex
	nodes    map[string]*node
	absent   map[string]int // by address: refreshes without the node
	problems []string       // what the last refresh found
	down     bool

	watchful bool   // the start-up checks are over: new masters are vetted
	replid   string // of the master that is no cluster's, as of the last refresh
}

func newTopology(config *Config, l layout, s scripts) *topology {
	return &topology{
		config: config, layout: l, scripts: s,
		routes: make([]atomic.Pointer[node], l.partitions+1),
		kick:   make(chan struct{}, 1), stop: func() {},
		nodes: map[string]*node{}, absent: map[string]int{},
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
			if err := t.refresh(ctx); err != nil && ctx.Err() == nil {
				t.config.Logger.Warn("refresh of the Redis topology", "error", err)
			}
			pause(ctx, refreshPause)
		}
	}()
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
		n = &node{addr: addr, top: t, client: newClient(t.config, addr)}
		n.acks.Store(unknownAcks)
		t.nodes[addr] = n
	}
	return n
}

// view is what one node says about the cluster.
type view struct {
	from  *node
	slots []redis.ClusterSlot
	ok    bool
	epoch int64
}

// better prefers views of nodes that see a working cluster, then newer ones:
// a node that was cut off keeps an old view.
func (v *view) better(than *view) bool {
	if than == nil || v.ok != than.ok {
		return than == nil || v.ok
	}
	return v.epoch > than.epoch
}

// refresh learns the routes and counts replicas.
func (t *topology) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, refreshBudget)
	defer cancel()
	var err error
	if t.cluster {
		err = t.refreshCluster(ctx)
	} else {
		err = t.refreshSingle(ctx)
	}
	t.examine(ctx, err)
	return err
}

func (t *topology) refreshCluster(ctx context.Context) error {
	best, err := t.survey(ctx)
	if best == nil {
		return fmt.Errorf("no node tells the cluster's slots: %w", err)
	}
	owners := make([]*node, slots)
	listed := map[string]bool{}
	for _, part := range best.slots {
		for i, described := range part.Nodes {
			addr := best.from.beside(described.Addr)
			listed[addr] = true
			n := t.node(addr)
			if i > 0 {
				continue
			}
			for slot := max(part.Start, 0); slot <= min(part.End, slots-1); slot++ {
				owners[slot] = n
			}
		}
	}
	for p := range t.routes {
		t.routes[p].Store(owners[t.layout.slot(p)])
	}
	t.forget(listed)
	return nil
}

// survey asks several nodes for their view and returns the best; it waits for
// more than half of those asked.
func (t *topology) survey(ctx context.Context) (*view, error) {
	asked := t.all()
	for _, addr := range t.config.Addrs {
		if n := t.node(addr); len(asked) < refreshAsks {
			asked = append(asked, n)
		}
	}
	rand.Shuffle(len(asked), func(i, j int) { asked[i], asked[j] = asked[j], asked[i] })
	asked = asked[:min(len(asked), refreshAsks)]
	type answer struct {
		view *view
		err  error
	}
	answers := make(chan answer, len(asked))
	for _, n := range asked {
		t.wait.Add(1)
		go func() {
			defer t.wait.Done()
			v, err := n.view(ctx)
			answers <- answer{v, err}
		}()
	}
	var best *view
	var err error
	for left, good := len(asked), 0; left > 0 && good <= len(asked)/2; left-- {
		a := <-answers
		if a.err != nil {
			err = a.err
			continue
		}
		good++
		if a.view.better(best) {
			best = a.view
		}
	}
	return best, err
}

func (n *node) view(ctx context.Context) (*view, error) {
	pipe := n.client.Pipeline()
	slots, info := pipe.ClusterSlots(ctx), pipe.ClusterInfo(ctx)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("node %s: %w", n.addr, err)
	}
	facts := parseInfo(info.Val())
	return &view{from: n, slots: slots.Val(), ok: facts["cluster_state"] == "ok", epoch: facts.number("cluster_current_epoch")}, nil
}

// refreshSingle finds the master among the servers.
func (t *topology) refreshSingle(ctx context.Context) error {
	addrs := t.config.Addrs
	if t.config.SentinelMaster != "" {
		addrs = []string{"sentinel:" + t.config.SentinelMaster}
	}
	var faults []error
	for _, addr := range addrs {
		n := t.node(addr)
		text, err := n.client.Info(ctx, "replication").Result()
		if err != nil {
			faults = append(faults, fmt.Errorf("node %s: %w", addr, err))
			continue
		}
		facts := parseInfo(text)
		if facts["role"] != "master" {
			faults = append(faults, fmt.Errorf("node %s: is no master", addr))
			continue
		}
		if id := facts["master_replid"]; id != t.replid { // promoted behind the same name, or started anew
			t.replid = id
			n.vetted.Store(false)
			n.scripts.Store(false)
		}
		for p := range t.routes {
			t.routes[p].Store(n)
		}
		return nil
	}
	return errors.Join(faults...)
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
