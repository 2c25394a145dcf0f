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

// A Node holds all knowledge of the store about one Redis server. A Node is safe for concurrent use.
type Node struct {
	addr    string
	client  *redis.Client
	top     *Topology
	trips   RoundTrips
	scripts atomic.Bool            // the scripts are loaded, as far as known
	id      atomic.Pointer[string] // id in the cluster; nil: unknown
	told    atomic.Pointer[gossip] // the node's last reply to CLUSTER NODES; nil: not asked yet
	process atomic.Pointer[string] // run id of the server on the latest connection; nil: no connection yet
	vetted  atomic.Int64           // time of the last examination of this master, in ms; 0: none since the promotion

	looking sync.Mutex  // held during a check of the sentinel keys
	doubted atomic.Bool // a check of the sentinel keys is in progress, because of a new run or a new partition

	// Only the goroutine that refreshes the routes uses the fields "breach", "warned" and "missed". Before the start of
	// this goroutine, Discover also uses them.
	breach string   // the promises that the node's settings break; "": none
	warned []string // further warnings about the node
	missed []string // checks that were not possible at start-up or in the latest examination

	count  atomic.Pointer[Count] // the node's replicas; nil: not counted, or the replicas have changed
	alive  atomic.Int32          // number of working replicas
	known  atomic.Int32          // number of all replicas
	most   atomic.Int32          // largest number of replicas so far
	looked atomic.Int64          // time of the last ROLE command in a pipeline, in µs
	lacks  atomic.Pointer[lack]  // reason why the store cannot decide about the node's users; nil: it can

	standing atomic.Pointer[standing] // nil: not checked since the node became a master
	// evictionKnown is the time, in µs, of the latest read of evicted_keys that found no new evicted keys.
	evictionKnown atomic.Int64

	heirless atomic.Bool // the node has replicas, and none of them may take over
	nameless atomic.Bool // the store's user had no right to run ROLE at the last check
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

// AttemptTime returns the time limit of one attempt at a command on this node. If no reply arrives within the time
// limit, the node may or may not have executed the command.
func (n *Node) AttemptTime() time.Duration {
	return n.trips.Patience(n.top.config.AttemptTimeout, n.top.config.AttemptTimeout)
}

// The method "name" returns the node's id in the cluster, or "" if the id is not known yet.
func (n *Node) name() string {
	if id := n.id.Load(); id != nil {
		return *id
	}
	return ""
}

// The method "resolve" completes an address of another node from a reply of this node. If the host in the address is
// missing or unknown, "resolve" uses the host of this node. In redirection errors (MOVED, ASK), IPv6 addresses have no
// brackets.
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

// If the node lacks the Lua scripts, LoadScripts adds commands to the pipeline that load the scripts.
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

// MarkLoaded records, after the run of the pipeline, that the node has the Lua scripts if all commands from LoadScripts
// have succeeded.
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

// loadScripts loads the Lua scripts into the node in advance, so that a later pipeline needs one round trip less. If
// loadScripts fails, a later pipeline loads the scripts.
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
// commands. The reply to the read shows whether the server was emptied before a command of the pipeline ran. If the
// argument "awaited" is true, a WAIT follows in the pipeline, and AskSign sets the TTL of the sentinel key instead of a
// read. AskSign needs a write before WAIT because, since Redis 7.2, WAIT waits only for writes of the same connection.
// A command that repeats a recorded send writes nothing. AskSign returns nil while some sentinel keys have not been
// created yet.
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

// JudgeSign checks the reply to the command that AskSign added, and returns the reason to reject the replies of the
// pipeline, or nil to accept them. If the partition has no sentinel key (a marker key that reveals lost data),
// JudgeSign puts the partition into quarantine (no decisions until an operator accepts the loss). After a permission
// error, JudgeSign also rejects the replies, because the store could not notice that the server was emptied. JudgeSign
// ignores other errors, because the hash slot of the partition may have moved to another node.
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
