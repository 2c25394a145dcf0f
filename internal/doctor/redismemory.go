package doctor

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"capper/internal/capping/redisstore"
	"capper/internal/sizing"
)

// If a Redis master uses more than the fraction nearlyFull of maxmemory, the doctor reports a warning.
const nearlyFull = 0.8

// judgeMemory compares the used memory of each Redis master with its setting maxmemory, and with the memory for the
// planned users.
func (s *servers) judgeMemory(n *notes, r *redisstore.Report) {
	masters := answering(r, true)
	serving := 0
	for _, master := range masters {
		if !r.Cluster || master.Serving() {
			serving++
		}
	}
	for _, master := range masters {
		if r.Cluster && !master.Serving() {
			continue
		}
		s.judgeMaster(n, master, serving)
	}
	for _, node := range answering(r, false) {
		if node.Master == "" {
			continue
		}
		if own, its := node.Facts.Number("maxmemory"), masterOf(masters, node).Number("maxmemory"); own != 0 &&
			own < its {
			n.Warn(kind(node), fmt.Sprintf("maxmemory is %s, but %s on its master", bytesText(own), bytesText(its)),
				"set the same maxmemory on every server of a shard",
				"a promoted replica rejects sends when its memory "+
					"is full")
		}
	}
}

func masterOf(masters []*redisstore.Node, replica *redisstore.Node) interface{ Number(string) int64 } {
	for _, m := range masters {
		if m.Addr == replica.Master {
			return m.Facts
		}
	}
	return replica.Facts
}

func (s *servers) judgeMaster(n *notes, master *redisstore.Node, masters int) {
	f := master.Facts
	used, most, machine := f.Number("used_memory"), f.Number("maxmemory"), f.Number("total_system_memory")
	if ratio, _ := strconv.ParseFloat(f["mem_fragmentation_ratio"], 64); ratio > 1.5 && used > 1<<30 {
		n.Warn(kind(master), fmt.Sprintf("server takes %.2f times the memory that it uses (mem_fragmentation_ratio)",
			ratio),
			"set activedefrag yes, or restart replicas one by one and then fail over",
			"the memory of the machine is full before maxmemory is reached")
	}
	bound, what := most, "maxmemory"
	if most == 0 {
		n.Warn(kind(master), "maxmemory is not set, and the machine has "+bytesText(machine),
			"set maxmemory to at most two thirds of the memory of the machine",
			"the kernel ends a server that takes all memory, and its users are unavailable during the restart; with "+
				"maxmemory the server only rejects sends")
		bound, what = machine, "the machine's memory"
	}
	if bound == 0 {
		n.Skip(kind(master), "server uses %s; its memory limit is hidden", bytesText(used))
		return
	}
	share := float64(used) / float64(bound)
	seen := fmt.Sprintf("server uses %s of %s (%s), %.1f %%", bytesText(used), bytesText(bound), what, 100*share)
	const change = "add memory, or add masters (redis-cli --cluster reshard)"
	switch {
	case most > 0 && used >= most: // at exactly maxmemory, Redis accepts one more write
		n.Fail(kind(master), seen, change, "a full server rejects every send: its users are unavailable")
	case most > 0 && share > nearlyFull:
		n.Warn(kind(master), seen, change, "a full server rejects every send: its users would be unavailable")
	default:
		n.OK(kind(master), "%s", seen)
	}
	s.judgeHeadroom(n, master, bound, masters)
}

// judgeHeadroom compares the memory limit of a Redis master with the memory for the master's part of the planned users.
func (s *servers) judgeHeadroom(n *notes, master *redisstore.Node, bound int64, masters int) {
	if s.Users == 0 {
		return
	}
	load := s.load()
	load.Shards = min(max(masters, 1), sizing.MaxShards)
	need := int64(sizing.RedisMaster(load))
	seen := fmt.Sprintf("%d users with %g sends on %d masters need %s on each, and it may use %s", s.Users, load.Sends,
		load.Shards, bytesText(need), bytesText(bound))
	switch of := kind(master) + " headroom"; {
	case need > bound:
		n.Fail(of, seen, fmt.Sprintf("%s of maxmemory for each, or more masters: capper size --users %d --sends %g",
			bytesText(int64(sizing.Maxmemory(load))), s.Users, load.Sends),
			"a full server rejects every send: its users are unavailable")
	case float64(need) > nearlyFull*float64(bound):
		n.Warn(of, seen, bytesText(int64(sizing.Maxmemory(load)))+" of maxmemory for each, or more masters",
			"no memory is left for users who receive more messages than expected")
	default:
		n.OK(of, "%s", seen)
	}
}

// leastBacklog is the minimum size in bytes of the replication backlog. With a replication backlog of this size, a
// replica can catch up after a short interruption.
const leastBacklog = 64 << 20

// judgeReplication checks whether a replica can catch up after an interruption.
func (s *servers) judgeReplication(n *notes, r *redisstore.Report) {
	for _, master := range answering(r, true) {
		backlog, err := strconv.ParseInt(cmp.Or(master.Settings["repl-backlog-size"],
			master.Facts["repl_backlog_size"]), 10, 64)
		need := int64(leastBacklog)
		if s.Users > 0 {
			load := s.load()
			load.Shards = min(max(len(answering(r, true)), 1), sizing.MaxShards)
			need = max(need, int64(sizing.Backlog(load)))
		}
		written, _ := strconv.ParseFloat(master.Facts["instantaneous_output_repl_kbps"], 64)
		switch {
		case s.options.ReplicaAcks.None():
			n.Skip(kind(master), "replica_acks is 0")
		case err != nil:
			n.Skip(kind(master), "hides repl-backlog-size")
		case backlog < need:
			n.Warn(kind(master), fmt.Sprintf("repl-backlog-size is %s; replicas receive %.0f KiB/s now",
				bytesText(backlog), written), fmt.Sprintf("repl-backlog-size %dmb", (need+1<<20-1)>>20),
				"a replica that disconnects briefly during a large campaign must copy all data again, and confirms "+
					"no writes until then")
		default:
			n.OK(kind(master), "repl-backlog-size is %s", bytesText(backlog))
		}
		s.judgeOutputLimit(n, master, need)
	}
}

// judgeOutputLimit checks the Redis setting for the output buffers of replicas. In the setting
// client-output-buffer-limit, three numbers follow each class of connections, for example "normal 0 0 0 slave 268435456
// 67108864 60 …".
func (s *servers) judgeOutputLimit(n *notes, master *redisstore.Node, need int64) {
	words := strings.Fields(master.Settings["client-output-buffer-limit"])
	for i := 0; i+3 < len(words); i += 4 {
		if words[i] != "slave" && words[i] != "replica" {
			continue
		}
		hard, _ := strconv.ParseInt(words[i+1], 10, 64)
		soft, _ := strconv.ParseInt(words[i+2], 10, 64)
		if least := min(orMany(hard), orMany(soft)); least < need {
			n.Warn(kind(master), fmt.Sprintf("client-output-buffer-limit of replicas is %s, and %s for a limited time",
				bytesText(hard), bytesText(soft)), fmt.Sprintf("client-output-buffer-limit replica %dmb %dmb 60",
				max(512, 4*need>>20), max(256, 2*need>>20)),
				"a replica that falls behind during a large campaign is disconnected, copies all data again and is "+
					"disconnected again")
		}
	}
}

// orMany returns the given limit of a Redis setting. In Redis, the limit 0 means "no limit", so orMany returns a very
// large number for 0.
func orMany(bound int64) int64 {
	return cmp.Or(bound, 1<<62)
}

// If a fork of a Redis server takes longer than longFork, the doctor reports a warning, because a fork delays calls.
const longFork = 500 * time.Millisecond

// judgePersistence adds findings for Redis servers that failed to write a snapshot or the append-only file.
func (s *servers) judgePersistence(n *notes, r *redisstore.Report) {
	for _, node := range answering(r, false) {
		f, bad := node.Facts, false
		for _, fact := range []string{"aof_last_write_status", "aof_last_bgrewrite_status", "rdb_last_bgsave_status"} {
			if f[fact] != "" && f[fact] != "ok" {
				bad = true
				n.Fail(kind(node), fact+" is "+f[fact], "check its log, its free disk space and vm.overcommit_memory",
					"allowed sends are not on its disk; Redis may reject every write")
			}
		}
		if f["loading"] == "1" {
			bad = true
			n.Warn(kind(node), "is loading its data", "wait", "the server answers no calls until its data is loaded")
		}
		if fork := time.Duration(f.Number("latest_fork_usec")) * time.Microsecond; fork > longFork {
			bad = true
			n.Warn(kind(node), "server paused for "+fork.String()+" at its latest fork",
				"add masters, so that each has less data; disable transparent huge pages",
				"calls wait for this time whenever the append-only file is rewritten")
		}
		if !bad {
			n.OK(kind(node), "writes to disk succeed; append-only file %s", map[bool]string{true: "on",
				false: "off"}[f["aof_enabled"] == "1"])
		}
	}
}
