// Package topology finds out which Redis server holds which partition of the keys, and whether the records on that
// server are complete. Package topology reads no user data.
//
// # Routing
//
//	CLUSTER SLOTS of up to 5 nodes ─> newest view of our cluster ─> routes: partition ─> node
//	ROLE and INFO of single servers ─> master with our history ──┘
//
// A refresh runs every second, and whenever a caller reports that a route is out of date. In a cluster, the refresh
// asks several nodes for their view of the cluster (survey.go). It adopts the newest view that is of our cluster. If a
// node was cut off from its cluster, it keeps an old view of the cluster. If a node belongs to another cluster, the
// refresh rejects its view. If the servers form no cluster, the refresh asks every server for its role and replication
// history (master.go). Another server replaces the current master only if it has the same replication history, because
// it would otherwise lack the recorded sends.
//
// # Complete records
//
// A partition whose records may be incomplete is put into quarantine (bar.go). The users of a partition in quarantine
// get the outcome "unavailable" until the cause is gone or an operator accepts the loss.
//
//   - replicas.go counts how many replicas of a master must confirm a send, and detects replicas that joined after the
//     count.
//   - lack.go makes calls fail at once, without a retry, when a master refuses connections or has had too few replicas
//     for a while. When the shard has a master and enough replicas again, a later refresh notices this.
//   - signs.go checks two keys of each partition, which hold times: a sentinel key and a mark. The mark of a partition
//     is a Redis hash that scripts write in the same way as users' logs, so that its loss shows a loss of logs. If a
//     partition has no sentinel key, its server was emptied. If a partition's sentinel key has a later time than its
//     mark, the server dropped writes of scripts. If the time in the sentinel key is ahead of the server's clock, the
//     clock was wrong before, so keys may have expired too early.
//   - points.go keeps, in the memory of this process, the latest time that each partition has reached. If a partition
//     on a server is behind its latest known time, the server has restarted with older data. The script sign.lua
//     records in the partition that the partition has lost data.
//   - belief.go blocks decisions on a server that has restarted or become a master, until the sentinel keys on the
//     server have been checked.
//   - moves.go follows hash slots that the cluster moves between two nodes. If a failover happens during the move of a
//     hash slot, a third node may get the slot without the moved keys. A hash slot that a third node has got in this
//     way is called torn.
//   - promise.go and ledger.go put the partitions of a master into quarantine if the master evicts keys, has evicted
//     keys or runs without an append-only file. The quarantine of these partitions holds in every instance and across
//     restarts of capper, until an operator accepts the loss.
//   - check.go and examine.go reject a server at start-up if its settings or rights would break a promise. The checks
//     of settings and rights also run later, and report problems in the log and in the status.
package topology
