package topology

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"capper/internal/capping/redisstore/topology/connect"
)

// lookAtReplicas counts the master's replicas, and vets it when it is time. It
// returns what is wrong with the replicas; "": nothing.
func (n *Node) lookAtReplicas(ctx context.Context) (problem string) {
	if err := n.countReplicas(ctx); err != nil {
		problem = fmt.Sprintf("node %s: %v", n.addr, err)
	} else if short := n.shortage(); short != "" {
		problem = fmt.Sprintf("node %s: %s", n.addr, short)
	}
	if n.top.watchful && time.Since(time.UnixMilli(n.vetted.Load())) > vetEvery {
		n.vet(ctx)
	}
	return problem
}

// countReplicas asks the node for its replicas and sets how many of them have
// to hold a send.
func (n *Node) countReplicas(ctx context.Context) error {
	alive, _, err := n.replicas(ctx)
	if err != nil {
		return err
	}
	n.acks.Store(int32(max(alive, 1)))
	n.alive.Store(int32(alive))
	return nil
}

// shortage is why sends cannot be held by as many replicas as asked for; ""
// when they can.
func (n *Node) shortage() string {
	acks, alive := n.top.config.ReplicaAcks, int(n.alive.Load())
	want := 1
	if acks != Healthy {
		want = acks.fixed()
	}
	if alive >= want {
		return ""
	}
	return fmt.Sprintf("%d of the %d replicas that replica_acks: %s asks for", alive, want, acks)
}

// replicas counts the node's replicas: those that can hold a send, and all. In
// a cluster those can that it does not flag as failed, but for those that get
// all data anew: they confirm nothing until they have it.
func (n *Node) replicas(ctx context.Context) (alive, all int, err error) {
	pipe := n.client.Pipeline()
	info := pipe.Info(ctx, "replication")
	nodes := redis.NewStringCmd(ctx)
	if n.top.cluster {
		nodes = pipe.ClusterNodes(ctx)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, 0, err
	}
	online, syncing, all := countFed(connect.ParseInfo(info.Val()))
	if !n.top.cluster {
		return online, all, nil
	}
	n.noteGossip(nodes.Val())
	alive, all = countSlaves(nodes.Val())
	return max(alive-syncing, min(alive, online)), all, nil // one that is flagged may be fed all the same
}

// countFed reads INFO replication.
func countFed(info connect.Facts) (online, syncing, all int) {
	all = int(info.Number("connected_slaves"))
	for i := range all {
		switch slave := info["slave"+strconv.Itoa(i)]; {
		case strings.Contains(slave, "state=online"):
			online++
		case strings.Contains(slave, "state=wait_bgsave"), strings.Contains(slave, "state=send_bulk"):
			syncing++
		}
	}
	return online, syncing, all
}

// countSlaves reads CLUSTER NODES.
func countSlaves(text string) (alive, all int) {
	for fields := range slaves(text) {
		all++
		if !slices.Contains(strings.Split(fields[2], ","), "fail") {
			alive++
		}
	}
	return alive, all
}

// slaves yields the lines of CLUSTER NODES about replicas of the node that was
// asked, as their fields: id, address, flags, master's id …
func slaves(text string) iter.Seq[[]string] {
	self := ""
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 2 && slices.Contains(strings.Split(f[2], ","), "myself") {
			self = f[0]
		}
	}
	return func(yield func([]string) bool) {
		for line := range strings.Lines(text) {
			if f := strings.Fields(line); len(f) > 3 && f[3] == self && !yield(f) {
				return
			}
		}
	}
}
