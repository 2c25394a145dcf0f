// Package topology tracks which Redis server holds which partition of the keys, and whether the
// records on that server are complete. The package reads no user data.
//
// # Routing
//
//	CLUSTER SLOTS of up to 5 nodes ─> newest view of our cluster ─> routes: partition ─> node
//	ROLE and INFO of single servers ─> master with our history ──┘
//
// A refresh runs every second, and whenever a caller reports that a route is out of date.
// In a cluster, the refresh asks several nodes for their view (survey.go) and adopts the newest view
// of our cluster. A node that was cut off keeps an old view, and a view of another cluster is
// rejected. Outside a cluster, the refresh asks every server for its role and replication history
// (master.go). Only a server with the same history may replace the current master, because any
// other server would start without the recorded sends.
//
// # Complete records
//
// A partition with doubtful records is quarantined (bar.go): its users get the outcome
// "unavailable" until the cause is gone or an operator accepts the loss.
//
//   - replicas.go counts how many replicas of a master must confirm a send, and detects replicas that
//     joined after the count.
//   - lack.go makes calls fail at once when a master refuses connections or has had too few replicas for a while.
//     The refresh detects when the shard is complete again.
//   - signs.go checks a sentinel key and a mark for each partition. The mark is a hash that is
//     written in the same way as users' logs. A missing sentinel key shows that the server was emptied. A
//     sentinel key that is later than the mark shows that the server dropped writes of scripts. A
//     sentinel key ahead of the server's clock shows that the clock was wrong before, so keys may have
//     expired too early.
//   - points.go remembers the latest time that each partition has reached. A server behind that
//     time has restarted from an older state, and sign.lua records that state in the partition.
//   - belief.go blocks decisions on a server that has restarted or become a master until the
//     sentinel keys on the server have been checked.
//   - moves.go follows slots that move between two nodes. A failover during the move may give
//     the slot to a third node, which lacks the moved keys; the slot then counts as torn.
//   - promise.go and ledger.go quarantine the partitions of a master that evicts keys, has evicted
//     keys or runs without an append-only file. The quarantine holds in every instance and across restarts
//     until an operator accepts the loss.
//   - check.go and examine.go refuse a server at start-up when its settings or rights would break a
//     promise. While the store runs, the same checks report problems in the log and the status.
package topology
