package topology

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"capper/internal/capping/redisstore/fault"
)

// shard is a master with its replicas, as the last refresh found them.
type shard struct {
	Addr     string // of the master
	Working  int    // replicas that can hold a send
	Known    int    // replicas, also those that cannot; 0 where the master does not answer
	Degraded bool   // its users are unavailable: it does not answer, or too few replicas work
}

// Shards are the masters that hold partitions, in order of the first.
func (t *Topology) Shards() (shards []shard) {
	for _, n := range t.Masters() {
		known := int(n.known.Load())
		shards = append(shards, shard{n.addr, min(int(n.alive.Load()), known), known, n.degraded()})
	}
	return shards
}

// NeededReplicas is how many replicas of a master have to work for its users to be decided.
func (a Acks) NeededReplicas() int {
	if a == Healthy {
		return 1
	}
	return a.fixed()
}

// lookAtReplicas counts the master's replicas, and vets it when it is time. It
// returns what is wrong with the replicas; "": nothing.
func (n *Node) lookAtReplicas(ctx context.Context) (problem string) {
	lacking := n.lookForLack(ctx)
	n.noteLack(lacking)
	if n.degraded() {
		problem = fmt.Sprintf("node %s: %v", n.addr, lacking)
	}
	if n.vetDue() {
		n.vet(ctx)
	}
	return problem
}

// lookForLack counts the master's replicas and is what it lacks to decide its users, or nil.
func (n *Node) lookForLack(ctx context.Context) *lack {
	found, err := n.replicas(ctx)
	n.known.Store(int32(found.all))
	if err != nil {
		return unanswered(err)
	}
	n.keepCount(found)
	n.judge(found.facts)
	return n.shortage(found)
}

// keepCount sets how many of the replicas have to hold a send.
func (n *Node) keepCount(found found) *Count {
	n.most.Store(max(n.most.Load(), int32(found.all)))
	count := &Count{Acks: max(found.alive, 1), fed: found.fed, named: true, missing: found.alive < int(n.most.Load())}
	n.count.Store(count)
	n.alive.Store(int32(found.alive))
	return count
}

// found is what a node says of its replicas.
type found struct {
	alive, all int // those that can hold a send, and all
	fed        []fed
	facts      Facts // INFO
}

// replicas counts the node's replicas. In a cluster those can hold a send that it does
// not flag as failed, but for those that get all data anew: they confirm nothing until
// they have it. One that is flagged and confirms all the same can hold one too: it may
// be back before the flag is gone.
func (n *Node) replicas(ctx context.Context) (found, error) {
	pipe := n.client.Pipeline()
	info, whole := pipe.Info(ctx, "replication"), pipe.Info(ctx)
	nodes := redis.NewStringCmd(ctx)
	if n.top.cluster {
		nodes = pipe.ClusterNodes(ctx)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return found{}, err
	}
	online, syncing, all := fedOf(ParseInfo(info.Val()))
	if !n.top.cluster {
		return found{len(online), all, online, ParseInfo(whole.Val())}, nil
	}
	n.noteGossip(nodes.Val())
	n.heirless.Store(heirless(nodes.Val()))
	alive, all := countSlaves(nodes.Val())
	return found{max(alive-syncing, min(alive, len(online)), talking(online, 1)), all, online,
		ParseInfo(whole.Val())}, nil
}

// Count is how many replicas of a master have to hold a send, and which of them it was
// feeding when they were counted.
type Count struct {
	Acks    int
	fed     []fed
	named   bool // the number was counted: it holds for these replicas alone
	missing bool // there were more replicas once: they may come back at any time
}

// fed is a replica that its master feeds: its address as the master has it, up to where it has
// confirmed, and for how many seconds it has confirmed nothing.
type fed struct {
	addr        string
	offset, lag int64
}

// Replicas is who has to hold a send, asked of the node itself when that is not known.
func (n *Node) Replicas(ctx context.Context) (*Count, error) {
	if acks := n.top.config.ReplicaAcks; acks != Healthy {
		return &Count{Acks: acks.fixed()}, nil
	}
	if known := n.count.Load(); known != nil {
		return known, nil
	}
	found, err := n.replicas(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the replicas of a master: %w", err)
	}
	return n.keepCount(found), nil
}

// confirmation is the question, at the end of a pipeline, whether enough replicas have
// what it wrote.
type confirmation struct {
	node  *Node
	count *Count
	wait  *redis.Cmd
	role  *redis.Cmd // nil: not asked
}

// AskReplicas adds the question to a pipeline, and gives replicas so long to confirm: WAIT
// says how many did, and ROLE behind it who else might be a master soon. Nil for no count.
func (n *Node) AskReplicas(ctx context.Context, pipe redis.Pipeliner, count *Count,
	patience time.Duration) *confirmation {
	if count == nil {
		return nil
	}
	c := &confirmation{node: n, count: count, wait: redis.NewCmd(ctx, "wait", count.Acks, patience.Milliseconds())}
	_ = pipe.Process(ctx, c.wait)
	if count.named && !n.nameless.Load() && n.lookDue(count) {
		c.role = redis.NewCmd(ctx, "role")
		_ = pipe.Process(ctx, c.role)
	}
	return c
}

// lookEvery is how often a master that misses none of its replicas is asked whether it has others:
// ROLE behind every WAIT would take 7 % of its time where calls are for one user each.
const lookEvery = 5 * time.Millisecond

// lookDue reports whether the pipeline has to ask who else is there. A replica that was here once may
// be back, and made master, in no time; one that never was has to copy everything first.
func (n *Node) lookDue(count *Count) bool {
	now := time.Now().UnixMicro()
	since := time.Duration(now-n.looked.Load()) * time.Microsecond
	if !count.missing && since >= 0 && since < lookEvery {
		return false
	}
	n.looked.Store(now)
	return true
}

// Judge is why the replies of the pipeline may not be believed, or nil. A replica that was not
// counted may be made master, though nobody waited for it: the next pipeline counts anew.
func (c *confirmation) Judge() error {
	if c == nil {
		return nil
	}
	got, err := c.wait.Int()
	switch {
	case err != nil:
		return fmt.Errorf("wait for replicas: %w", err)
	case got < c.count.Acks:
		return &errAcks{got, c.count.Acks}
	case c.role == nil:
		return nil
	case c.role.Err() != nil:
		return c.node.judgeRole(c.role.Err())
	}
	now, ok := roleOf(c.role.Val())
	if !ok {
		return fmt.Errorf("role: unexpected Redis reply %v", c.role.Val())
	}
	if uncounted := c.count.uncounted(now); uncounted != "" {
		c.node.count.CompareAndSwap(c.count, nil)
		return &errUncounted{uncounted}
	}
	return nil
}

// judgeRole takes an error of ROLE. Without the right to ask, which is told when the node is examined,
// the count has to do.
func (n *Node) judgeRole(err error) error {
	if fault.IsAuth(err) {
		n.nameless.Store(true)
		return nil
	}
	return fmt.Errorf("read the addresses of replicas: %w", err)
}

// uncounted is the address of a replica that the count knew nothing of, or took for dead: more of
// them than were counted have confirmed something since. "": there is none.
func (c *Count) uncounted(now []fed) string {
	left, confirmed, silent := slices.Clone(c.fed), 0, fed{}
	for _, f := range now {
		i := slices.IndexFunc(left, func(counted fed) bool { return counted.addr == f.addr })
		if i < 0 {
			return f.addr
		}
		if left[i].offset != f.offset {
			confirmed++
			if silent.addr == "" || left[i].lag > silent.lag {
				silent = left[i]
			}
		}
		left = slices.Delete(left, i, i+1) // replicas behind one address have no other name
	}
	if confirmed > c.Acks {
		return silent.addr
	}
	return ""
}

// talking is how many replicas have confirmed within so many seconds, as each does every second that is alive.
func talking(online []fed, within int64) (n int) {
	for _, f := range online {
		if f.lag <= within {
			n++
		}
	}
	return n
}

// fedOf reads INFO replication: the replicas that are fed, and how many get all data anew.
func fedOf(info Facts) (online []fed, syncing, all int) {
	for _, replica := range replicasOf(info) {
		switch replica["state"] {
		case "online":
			online = append(online, fed{addrOf(replica), replica.Number("offset"), replica.Number("lag")})
		case "wait_bgsave", "send_bulk", "send_bulk_and_stream":
			syncing++
		}
		all++
	}
	return online, syncing, all
}

// roleOf reads ROLE's reply: master, offset, and address, port and offset of each replica that is fed.
// False: it is no master's.
func roleOf(reply any) (online []fed, ok bool) {
	parts, _ := reply.([]any)
	if len(parts) < 3 || parts[0] != "master" {
		return nil, false
	}
	replicas, _ := parts[2].([]any)
	for _, replica := range replicas {
		fields, _ := replica.([]any)
		if len(fields) < 3 {
			return nil, false
		}
		host, _ := fields[0].(string)
		port, _ := fields[1].(string)
		text, _ := fields[2].(string)
		offset, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, false
		}
		online = append(online, fed{addr: net.JoinHostPort(host, port), offset: offset})
	}
	return online, true
}

// errAcks is that too few replicas confirmed in time.
type errAcks struct{ got, want int }

func (e *errAcks) Error() string {
	return fmt.Sprintf("%d of %d replicas confirmed in time", e.got, e.want)
}

// Remedy is to ask again who the replicas are.
func (e *errAcks) Remedy() fault.Remedy { return unconfirmed }

// errUncounted is that a replica is back, or new, which nobody waited for.
type errUncounted struct{ addr string }

func (e *errUncounted) Error() string {
	return fmt.Sprintf("replica %s has just returned and was skipped", e.addr)
}

// Remedy is that of too few.
func (e *errUncounted) Remedy() fault.Remedy { return unconfirmed }

var unconfirmed = fault.Remedy{Kind: fault.Acks, Unknown: true, Refresh: true}
