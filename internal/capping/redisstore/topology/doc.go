// Package topology knows which Redis server holds which partition of the keys,
// and whether what it holds may be believed. It knows no users.
//
// # Who holds a slot
//
// Every second, and whenever somebody learned that the routes are out of date,
// a refresh asks some nodes of the cluster for their view (survey.go) and takes
// the newest one of our cluster: a node that was cut off keeps an old view, and
// nodes of another cluster must never be followed. Servers that do not belong to a
// cluster are asked for their role and history (master.go): only who has the
// history of the master in use takes over from it, since another server would
// start without the recorded sends.
//
// # Whether it may be believed
//
//   - replicas.go: how many replicas of a master have to hold a send, and whether others
//     than those that were counted are there by now;
//   - lack.go: a master that lacks its replicas, or refuses connections, is sent nothing after
//     a moment: its users are undecided at once, and the refresh finds out when it is whole;
//   - signs.go: a sign stands for all that is recorded in a partition, and a mark, beside it, is
//     written as logs are. A server without the sign was emptied. One whose sign is later than its mark
//     dropped what scripts wrote. One whose clock is behind its sign was ahead before, and
//     keys may have expired too early;
//   - points.go: how far each partition is known to have come. A server that falls behind that came back with
//     an older state, and sign.lua notes it there;
//   - belief.go: a server that started, or became a master, decides nobody until its signs have been looked at;
//   - moves.go: a slot that is being moved has its keys on two nodes. When a
//     failover makes another node its owner, the slot is torn;
//   - promise.go, ledger.go: a master that evicts, has evicted or has no append-only file is not
//     decided on until an operator accepts it, in any instance and after any restart;
//   - check.go, and the package examine: a server whose settings or rights would
//     break a promise is refused at the start, and told of later.
//
// A partition that is not to be believed is barred (bar.go): its users are
// unavailable until the Bar says otherwise.
package topology
