package topology

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"capper/internal/capping/redisstore/fault"
)

// Node is one Redis server and its known state. It is safe for concurrent use.
type Node struct {
	addr    string
	client  *redis.Client
	top     *Topology
	trips   RoundTrips
	scripts atomic.Bool            // the scripts are loaded, as far as known
	id      atomic.Pointer[string] // id in the cluster; nil: unknown
	told    atomic.Pointer[gossip] // its last CLUSTER NODES; nil: not asked yet
	process atomic.Pointer[string] // run id of the server on the latest connection; nil: no connection yet
	vetted  atomic.Int64           // when this master was last examined, in ms; 0: not since its promotion

	looking sync.Mutex  // one check of the sentinel keys at a time
	doubted atomic.Bool // a call found a new run or a new partition, and a check of the sentinel keys is under way

	// The refresher uses these fields, and Discover uses them before it.
	breach string   // the promises that the settings break; "": none
	warned []string // further warnings about the node
	missed []string // parts that neither start-up nor the latest examination could check

	count  atomic.Pointer[Count] // its replicas; nil: not counted, or the replicas have changed
	alive  atomic.Int32          // number of working replicas
	known  atomic.Int32          // number of all replicas
	most   atomic.Int32          // highest number of replicas so far
	looked atomic.Int64          // when a pipeline last asked for ROLE, in µs
	lacks  atomic.Pointer[lack]  // why the last check found the node's users undecided; nil: they can be decided

	standing atomic.Pointer[standing] // nil: not asked since it became a master
	// evictionKnown is when a pipeline last learned that no more keys were evicted, in µs.
	evictionKnown atomic.Int64

	heirless atomic.Bool // it has replicas, and none of them may take over
	nameless atomic.Bool // at the last examination, the store's user had no right to ask the node for its replicas
}

func (t *Topology) newNode(addr string) *Node {
	n := &Node{addr: addr, top: t}
	n.client = t.config.Client(addr, &n.trips, n.noteProcess)
	return n
}

// Addr returns the node's host:port, or "sentinel:" and the master's name.
func (n *Node) Addr() string { return n.addr }

// Client returns the node's Redis client, which never retries.
func (n *Node) Client() *redis.Client { return n.client }

// AttemptTime returns the time limit for one attempt. A command without a reply by then may or may
// not have been executed.
func (n *Node) AttemptTime() time.Duration {
	return n.trips.Patience(n.top.config.AttemptTimeout, n.top.config.AttemptTimeout)
}

// name returns the node's id in its cluster, or "" while the id is unknown.
func (n *Node) name() string {
	if id := n.id.Load(); id != nil {
		return *id
	}
	return ""
}

// resolve completes an address that the node returned. An address without a known host gets the
// node's own host. Redirections hold IPv6 addresses without brackets.
func (n *Node) resolve(addr string) string {
	colon := strings.LastIndexByte(addr, ':')
	if colon < 0 {
		return addr
	}
	host, port := strings.Trim(addr[:colon], "[]"), addr[colon+1:]
	if host == "" || host == unknownHost {
		host, _, _ = net.SplitHostPort(n.addr)
	}
	return net.JoinHostPort(host, port)
}

// LoadScripts adds the commands that load the scripts to the pipeline, unless the node already has
// the scripts.
func (n *Node) LoadScripts(ctx context.Context, pipe redis.Pipeliner) []*redis.StringCmd {
	if n.scripts.Load() {
		return nil
	}
	var loads []*redis.StringCmd
	for _, source := range n.top.scripts {
		loads = append(loads, pipe.ScriptLoad(ctx, source))
	}
	return loads
}

// MarkLoaded records the results of the load commands after the pipeline has run.
func (n *Node) MarkLoaded(loads []*redis.StringCmd) {
	for _, load := range loads {
		if load.Err() != nil {
			return
		}
	}
	if loads != nil {
		n.scripts.Store(true)
	}
}

// MarkUnloaded records that the node lacks a script.
func (n *Node) MarkUnloaded() { n.scripts.Store(false) }

// loadScripts loads the scripts into the node, which saves the next pipeline a round trip. A
// failure has no other effect.
func (n *Node) loadScripts(ctx context.Context) {
	pipe := n.client.Pipeline()
	loads := n.LoadScripts(ctx, pipe)
	if Exec(ctx, pipe) == nil {
		n.MarkLoaded(loads)
	}
}

// VetSoon requests an examination of the node's rights and settings at the next refresh.
func (n *Node) VetSoon() { n.vetted.Store(0) }

// AskSign adds a read of the partition's sentinel key to the end of a pipeline. The reply shows
// whether the server was emptied before any command of the pipeline. With awaited, AskSign writes
// the key because a WAIT follows. Since Redis 7.2, WAIT counts only the writes of its own
// connection, and a command that repeats a recorded send writes nothing. AskSign returns nil until
// all sentinel keys have been created.
func (n *Node) AskSign(ctx context.Context, pipe redis.Pipeliner, partition int, awaited bool) *redis.Cmd {
	signed := n.top.signed.Load()
	if !signed && !awaited {
		return nil
	}
	sign := redis.NewCmd(ctx, n.top.signReads[partition]...)
	if awaited {
		sign = redis.NewCmd(ctx, "pexpire", n.top.config.Partitions[partition].signKey(), n.top.signLife.Load())
	}
	_ = pipe.Process(ctx, sign)
	if !signed {
		return nil
	}
	return sign
}

// JudgeSign returns the reason to reject the replies of a pipeline with AskSign, or nil. A missing
// sentinel key quarantines the partition. A permission error also rejects the replies, because an
// emptied server then goes unnoticed. Other errors prove nothing: the slot may have moved.
func (n *Node) JudgeSign(sign *redis.Cmd, partition int) error {
	switch {
	case sign == nil:
		return nil
	case sign.Err() == nil && sign.Val() != int64(0), sign.Err() != nil && !errors.Is(sign.Err(), redis.Nil) &&
		!fault.IsAuth(sign.Err()):
		return nil
	case fault.IsAuth(sign.Err()):
		return fmt.Errorf("read the sentinel key of a partition: %w", sign.Err())
	}
	n.top.markEmptied(n, partition)
	return barGone
}
