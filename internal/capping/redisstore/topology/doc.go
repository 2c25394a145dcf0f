// Package topology finds the Redis server of each partition of the keys, and checks whether the records on the server
// are complete. Package topology reads no user data.
//
// # Routing
//
//	CLUSTER SLOTS of up to 5 nodes ─> newest view of our cluster ─> routes: partition ─> node
//	ROLE and INFO of single servers ─> master with our history ──┘
//
// A refresh updates the routes (the node of each partition) every second, and whenever a caller reports that a route is
// out of date. In a cluster, the refresh asks several nodes for their view of the cluster (survey.go). The refresh
// adopts the newest view that describes the store's own cluster. A node that was cut off from its cluster keeps an old
// view of the cluster. The refresh rejects the view of a node of another cluster. If the servers form no cluster, the
// refresh asks every server for its role and replication history (master.go). The refresh accepts another server as the
// new master only if the server has the same replication history. A server with another history would lack the recorded
// sends.
//
// # Complete records
//
// If the records of a partition may be incomplete, the store puts the partition into quarantine (bar.go). The users of
// a partition in quarantine get the outcome "unavailable" until the cause is gone or an operator accepts the loss.
//
//   - replicas.go determines the number of a master's replicas that must confirm a send, and detects replicas that
//     joined after the count.
//   - lack.go makes calls fail immediately, without a retry, when a master refuses connections or has had too few
//     replicas for a while. A later refresh notices when the shard has a master and enough replicas again.
//   - signs.go checks two keys of each partition that hold times: a sentinel key and a mark. The mark of a partition is
//     a Redis hash. Scripts write the mark in the same way as users' logs, so that a loss of the mark shows a loss of
//     logs. If a partition has no sentinel key, its server was emptied. If a partition's sentinel key has a later time
//     than its mark, the server dropped writes of scripts. If the time in the sentinel key is ahead of the server's
//     clock, the clock was wrong before, so keys may have expired too early.
//   - points.go keeps, in the memory of this process, the latest known time of each partition. If the time of a
//     partition on a server is earlier than its latest known time, the server has restarted with older data. After a
//     restart with older data, the script sign.lua records the loss in the partition.
//   - belief.go blocks decisions on a server that has restarted or become a master, until the sentinel keys on the
//     server have been checked.
//   - moves.go follows hash slots that the cluster moves between two nodes. If a failover happens during the move of a
//     hash slot, a third node may get the slot without the moved keys. If a failover interrupted the move of a hash
//     slot and the slot lacks keys, the slot is called torn.
//   - promise.go and ledger.go put the partitions of a master into quarantine (no decisions until an operator accepts
//     the loss). The reason for the quarantine is that the master evicts keys, has evicted keys or runs without an
//     append-only file. All instances keep this quarantine, even after restarts of capper, until an operator accepts
//     the loss.
//   - check.go and examine.go reject a server at start-up if its settings or rights would break a promise of the store.
//     The checks of settings and rights also run later, and report problems in the log and in the status.
package topology
