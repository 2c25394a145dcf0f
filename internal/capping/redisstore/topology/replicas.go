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

// A shard is a master with the numbers of all replicas and of working replicas, as of the last refresh.
type shard struct {
	Addr     string // address of the master
	Working  int    // number of replicas that can store a send
	Known    int    // number of all replicas, working or not; 0 if the master does not answer
	Degraded bool   // the shard's users are unavailable: the master does not answer, or too few replicas work
}

// Shards returns all masters that hold partitions, each with the numbers of all replicas and of working replicas. The
// masters are sorted by the first partition of each master.
func (t *Topology) Shards() (shards []shard) {
	for _, n := range t.Masters() {
		known := int(n.known.Load())
		shards = append(shards, shard{n.addr, min(int(n.alive.Load()), known), known, n.degraded()})
	}
	return shards
}

// NeededReplicas returns the number of working replicas that a master needs for decisions about its users.
func (a Acks) NeededReplicas() int {
	if a == Healthy {
		return 1
	}
	return a.fixed()
}

// lookAtReplicas counts the replicas of the master and, if an examination is due, examines the master's settings. The
// result of lookAtReplicas is a text about a problem with the replicas, or "".
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

// lookForLack counts the replicas that the master reports. If the store cannot decide about the master's users,
// lookForLack returns the reason, and otherwise nil.
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

// keepCount stores the number of replicas that must confirm a send, from a new count of the replicas.
func (n *Node) keepCount(found found) *Count {
	n.most.Store(max(n.most.Load(), int32(found.all)))
	count := &Count{Acks: max(found.alive, 1), fed: found.fed, named: true, missing: found.alive < int(n.most.Load())}
	n.count.Store(count)
	n.alive.Store(int32(found.alive))
	return count
}

// The type "found" is a node's report about its replicas.
type found struct {
	alive, all int // number of replicas that can store a send, and number of all replicas
	most       int // largest number of replicas that a master of the cluster has, or will have after a repair
	fed        []fed
	facts      Facts // reply of INFO
}

// The method "replicas" counts the node's replicas. In a cluster, every replica can store a send, except replicas that
// the cluster flags as failed and replicas in a full resync. During a full resync, a replica confirms nothing. A
// replica with the flag "fail" that still confirms writes also counts as working, because the cluster removes the flag
// with a delay.
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
		return found{len(online), all, all, online, ParseInfo(whole.Val())}, nil
	}
	n.noteGossip(nodes.Val())
	n.heirless.Store(heirless(nodes.Val()))
	alive, all := countSlaves(nodes.Val())
	return found{max(alive-syncing, min(alive, len(online)), talking(online, 1)), all, mostSlaves(nodes.Val()), online,
		ParseInfo(whole.Val())}, nil
}

// A Count is the number of replicas that must confirm a send, with a list of the master's replicas at the time of the
// count.
type Count struct {
	Acks    int
	fed     []fed
	named   bool // the number was counted, and is valid only for the replicas in fed
	missing bool // some known replicas are missing, and may return at any time
}

// The type "fed" describes a replica that receives the replication stream of a master. The fields of "fed" are the
// replica's address, the last offset that the replica confirmed, and the seconds since this confirmation (lag).
type fed struct {
	addr        string
	offset, lag int64
}

// Replicas returns the Count of the master: the number of replicas that must confirm a send. If the number of replicas
// that must confirm a send is not known, Replicas counts the replicas.
func (n *Node) Replicas(ctx context.Context) (*Count, error) {
	if acks := n.top.config.ReplicaAcks; acks != Healthy {
		return &Count{Acks: acks.fixed()}, nil
	}
	if known := n.count.Load(); known != nil {
		return known, nil
	}
	found, err := n.replicas(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the replicas of a Redis master: %w", err)
	}
	return n.keepCount(found), nil
}

// A confirmation is a check at the end of a pipeline whether enough replicas have stored the pipeline's writes.
type confirmation struct {
	node  *Node
	count *Count
	wait  *redis.Cmd
	role  *redis.Cmd // nil: the pipeline does not run ROLE
}

// AskReplicas adds commands to a pipeline that check whether replicas have stored the writes of the pipeline. The
// replicas have the duration "patience" to confirm the writes. The command WAIT returns the number of replicas that
// have confirmed the writes. The command ROLE then shows replicas of the master that the store has not counted. An
// uncounted replica might soon become a master. If count is nil, AskReplicas returns nil.
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

// lookEvery is the minimum interval between two ROLE commands to a master if all known replicas are present. With calls
// of one user each, ROLE after every WAIT would take 7 % of the server's time.
const lookEvery = 5 * time.Millisecond

// lookDue reports whether the pipeline must run ROLE now, to find uncounted replicas of the master. If a known replica
// is missing, every pipeline runs ROLE, because a returning replica may become a master within moments. A new replica
// must first copy all data, so it cannot become a master within moments.
func (n *Node) lookDue(count *Count) bool {
	now := time.Now().UnixMicro()
	since := time.Duration(now-n.looked.Load()) * time.Microsecond
	if !count.missing && since >= 0 && since < lookEvery {
		return false
	}
	n.looked.Store(now)
	return true
}

// Judge returns the reason to reject the replies of the pipeline, or nil to accept them. An uncounted replica might
// become a master without the writes of the pipeline. If the master has an uncounted replica, Judge also makes the next
// pipeline count the replicas again.
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
		return fmt.Errorf("the Redis command ROLE returned an unexpected reply: %v", c.role.Val())
	}
	if uncounted := c.count.uncounted(now); uncounted != "" {
		c.node.count.CompareAndSwap(c.count, nil)
		return &errUncounted{uncounted}
	}
	return nil
}

// judgeRole returns an error if an error of the ROLE command makes the replies of the pipeline invalid. If the store's
// Redis user may not run ROLE, the store relies on the number of counted replicas. The examination of the node's rights
// reports the missing right to the operator.
func (n *Node) judgeRole(err error) error {
	if fault.IsAuth(err) {
		n.nameless.Store(true)
		return nil
	}
	return fmt.Errorf("read the addresses of Redis replicas: %w", err)
}

// The method "uncounted" returns the address of a working replica that the store has not counted, or "" if no such
// replica exists. If more replicas have confirmed a write since the last count than the store counted, one of them is
// also uncounted.
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
		left = slices.Delete(left, i, i+1) // replicas behind one address share a name
	}
	if confirmed > c.Acks {
		return silent.addr
	}
	return ""
}

// The function "talking" counts the replicas that have confirmed a write lately. The argument "within" of the function
// "talking" is the maximum age of the confirmation in seconds. Every working replica confirms writes once a second.
func talking(online []fed, within int64) (n int) {
	for _, f := range online {
		if f.lag <= within {
			n++
		}
	}
	return n
}

// fedOf reads the replicas from a reply of INFO replication. The results of fedOf are the replicas in normal
// replication, the number of replicas in a full resync, and the number of all replicas.
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

// roleOf reads the address and the offset of each replica from a master's reply to ROLE. If the reply does not come
// from a master, the result "ok" is false.
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

// errAcks reports that too few replicas have confirmed a write in time.
type errAcks struct{ got, want int }

func (e *errAcks) Error() string {
	return fmt.Sprintf("%d of %d replicas confirmed in time", e.got, e.want)
}

// If too few replicas confirmed a write, the method Remedy tells the caller to request a refresh of the topology. The
// refresh counts the replicas of the master again.
func (e *errAcks) Remedy() fault.Remedy { return unconfirmed }

// errUncounted reports that the master has a new or returning replica that did not have to confirm the write.
type errUncounted struct{ addr string }

func (e *errUncounted) Error() string {
	return fmt.Sprintf("replica %s has just returned and was skipped", e.addr)
}

// Like the Remedy of errAcks, the method Remedy tells the caller to request a refresh of the topology.
func (e *errUncounted) Remedy() fault.Remedy { return unconfirmed }

var unconfirmed = fault.Remedy{Kind: fault.Acks, Unknown: true, Refresh: true}
