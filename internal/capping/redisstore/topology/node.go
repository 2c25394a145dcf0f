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

// Node is one Redis server, and what is known of it. It is safe for concurrent use.
type Node struct {
	addr    string
	client  *redis.Client
	top     *Topology
	trips   RoundTrips
	scripts atomic.Bool            // whether the scripts were loaded, as far as we know
	id      atomic.Pointer[string] // in the cluster; nil: not known yet
	told    atomic.Pointer[gossip] // nil: it was not asked yet
	process atomic.Pointer[string] // which run of the server the latest connection is to; nil: there was none
	vetted  atomic.Int64           // when this master's settings were examined, in ms; 0: not since it is one

	looking sync.Mutex  // one look at the signs at a time
	doubted atomic.Bool // one is under way since a call found a new run, or a partition that is new to the node

	// Of the refresher, and of Open before it:
	breach string   // which promises the settings break; "": none
	warned []string // what else they are known for
	missed []string // what the start could not look at, and the latest examination neither

	count  atomic.Pointer[Count] // of its replicas; nil: it was not asked yet, or who they are has changed
	alive  atomic.Int32          // replicas that work
	known  atomic.Int32          // replicas, also those that do not
	most   atomic.Int32          // replicas that it ever had
	looked atomic.Int64          // when a pipeline last asked who its replicas are, in µs
	lacks  atomic.Pointer[lack]  // at the last look its users could not be decided; nil: they could

	standing atomic.Pointer[standing] // nil: it was not asked since it is a master
	// when a pipeline asked for evicted keys whose answer was that none are new, in µs
	evictionKnown atomic.Int64

	heirless atomic.Bool // it has replicas, and none that may take over
	nameless atomic.Bool // the store's user may not ask it who its replicas are, as of the last examination
}

func (t *Topology) newNode(addr string) *Node {
	n := &Node{addr: addr, top: t}
	n.client = t.config.Client(addr, &n.trips, n.noteProcess)
	return n
}

// Addr is host:port, or "sentinel:" and the master's name.
func (n *Node) Addr() string { return n.addr }

// Client is the client of the node. It tries once.
func (n *Node) Client() *redis.Client { return n.client }

// AttemptTime bounds one attempt: what has no reply by then is unknown.
func (n *Node) AttemptTime() time.Duration {
	return n.trips.Patience(n.top.config.AttemptTimeout, n.top.config.AttemptTimeout)
}

// name is the node's id in its cluster; "" while it is not known.
func (n *Node) name() string {
	if id := n.id.Load(); id != nil {
		return *id
	}
	return ""
}

// resolve is addr as the node means it: without a host it knows, it is the
// node's own. Redirections hold IPv6 addresses without brackets.
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

// LoadScripts adds to the pipeline what loads the scripts, where the node lacks
// them as far as is known.
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

// MarkLoaded keeps what became of the loads: the pipeline was sent.
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

// MarkUnloaded notes that the node lacks a script.
func (n *Node) MarkUnloaded() { n.scripts.Store(false) }

// loadScripts spares the next pipeline to the node an extra round trip; a failure
// costs no more than that.
func (n *Node) loadScripts(ctx context.Context) {
	pipe := n.client.Pipeline()
	loads := n.LoadScripts(ctx, pipe)
	if Exec(ctx, pipe) == nil {
		n.MarkLoaded(loads)
	}
}

// VetSoon has the next refresh examine the node's rights and settings.
func (n *Node) VetSoon() { n.vetted.Store(0) }

// AskSign adds to a pipeline the question whether the partition's sign is still
// there, behind commands for the partition: what was emptied before any of them
// shows. With awaited, a WAIT follows, and the question is a write: since Redis 7.2
// WAIT counts who has the writes of its own connection, and a command that finds what
// was recorded over another one writes nothing. Nil: signs are not all made yet.
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

// JudgeSign is why nothing of the pipeline with this question may be believed,
// or nil. Where the sign is missing it bars the partition. An error otherwise
// says nothing of it, as the slot may have moved, but for one of rights: nobody
// knows then whether the server was emptied.
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
