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

// A Node is one Redis server, together with everything that the store knows about it. A Node is safe for concurrent
// use.
type Node struct {
	addr    string
	client  *redis.Client
	top     *Topology
	trips   RoundTrips
	scripts atomic.Bool            // the scripts are loaded, as far as known
	id      atomic.Pointer[string] // id in the cluster; nil: unknown
	told    atomic.Pointer[gossip] // the node's last reply to CLUSTER NODES; nil: not asked yet
	process atomic.Pointer[string] // run id of the server on the latest connection; nil: no connection yet
	vetted  atomic.Int64           // when this master was last examined, in ms; 0: not since its promotion

	looking sync.Mutex  // held during a check of the sentinel keys
	doubted atomic.Bool // a call found a new run or a new partition, and a check of the sentinel keys is in progress

	// Only the goroutine that refreshes the routes uses these fields. Discover uses these fields before the goroutine
	// that refreshes starts.
	breach string   // the promises that the node's settings break; "": none
	warned []string // further warnings about the node
	missed []string // checks that neither start-up nor the latest examination could make

	count  atomic.Pointer[Count] // the node's replicas; nil: not counted, or the replicas have changed
	alive  atomic.Int32          // number of working replicas
	known  atomic.Int32          // number of all replicas
	most   atomic.Int32          // largest number of replicas so far
	looked atomic.Int64          // when a pipeline last asked for ROLE, in µs
	lacks  atomic.Pointer[lack]  // why the last check found the node's users undecided; nil: the users can be decided

	standing atomic.Pointer[standing] // nil: not checked since the node became a master
	// evictionKnown is the time, in µs, at which the latest pipeline that found no new evicted keys was sent.
	evictionKnown atomic.Int64

	heirless atomic.Bool // the node has replicas, and none of them may take over
	nameless atomic.Bool // at the last examination, the store's user had no right to ask the node for its replicas
}

func (t *Topology) newNode(addr string) *Node {
	n := &Node{addr: addr, top: t}
	n.client = t.config.Client(addr, &n.trips, n.noteProcess)
	return n
}

// Addr returns the node's address as host:port. For a master that Sentinel watches, Addr returns "sentinel:" and the
// master's name.
func (n *Node) Addr() string { return n.addr }

// Client returns the node's Redis client, which never retries.
func (n *Node) Client() *redis.Client { return n.client }

// AttemptTime returns how long one attempt at a command may take on this node. If the reply to a command is missing
// after AttemptTime, the node may or may not have executed the command.
func (n *Node) AttemptTime() time.Duration {
	return n.trips.Patience(n.top.config.AttemptTimeout, n.top.config.AttemptTimeout)
}

// name returns the id that the node has in its cluster, or "" if the id is not known yet.
func (n *Node) name() string {
	if id := n.id.Load(); id != nil {
		return *id
	}
	return ""
}

// resolve completes an address of another node, which this node has sent in a reply. If the host in the address is
// missing or unknown, resolve uses the host of the node that replied. In redirection errors (MOVED, ASK), an IPv6
// address has no brackets around it.
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

// LoadScripts adds commands to the pipeline that load the Lua scripts into the node, unless the node already has them.
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

// MarkLoaded is called after the pipeline has run: it records whether the commands from LoadScripts have succeeded.
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

// MarkUnloaded records that the node no longer has a Lua script, so that the next pipeline loads the scripts again.
func (n *Node) MarkUnloaded() { n.scripts.Store(false) }

// loadScripts loads the Lua scripts into the node in advance, which saves a later pipeline a round trip. If loadScripts
// fails, a later pipeline loads the scripts.
func (n *Node) loadScripts(ctx context.Context) {
	pipe := n.client.Pipeline()
	loads := n.LoadScripts(ctx, pipe)
	if Exec(ctx, pipe) == nil {
		n.MarkLoaded(loads)
	}
}

// VetSoon makes the next refresh examine the node's settings and the rights of the store's Redis user.
func (n *Node) VetSoon() { n.vetted.Store(0) }

// AskSign adds a read of the partition's sentinel key (a marker key that reveals lost data) to the end of a pipeline of
// commands. From the reply to this read, the store sees whether the server was emptied before a command of the pipeline
// ran. If the argument "awaited" is true, a WAIT follows in the pipeline, and AskSign writes the sentinel key instead
// of only reading it. AskSign writes the key because, since Redis 7.2, WAIT counts only the writes of its own
// connection. A command that repeats a recorded send writes nothing. As long as some sentinel keys have not been
// created yet, AskSign adds nothing and returns nil.
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

// JudgeSign checks the partition's sentinel key in the reply to the command that AskSign added. JudgeSign returns why
// the replies of the pipeline must be rejected, or nil to accept them. If the partition has no sentinel key (a marker
// key that reveals lost data), JudgeSign puts the partition into quarantine. JudgeSign also rejects the replies after a
// permission error, because the store could then not notice that the server was emptied. JudgeSign ignores all errors
// except permission errors, because the hash slot of the partition may have moved to another node.
func (n *Node) JudgeSign(sign *redis.Cmd, partition int) error {
	switch {
	case sign == nil:
		return nil
	case sign.Err() == nil && sign.Val() != int64(0), sign.Err() != nil && !errors.Is(sign.Err(), redis.Nil) &&
		!fault.IsAuth(sign.Err()):
		return nil
	case fault.IsAuth(sign.Err()):
		return fmt.Errorf("read the sentinel key (key that reveals lost data) of a partition in Redis: %w", sign.Err())
	}
	n.top.markEmptied(n, partition)
	return barGone
}
