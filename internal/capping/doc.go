// Package capping is the domain: which sends a user may still receive.
//
// # Vocabulary
//
// A send is one message that may go to one user on one channel. A message is
// named by an id and the namespace of who uses it: the same id again, of the
// same namespace and on the same channel, is the same send, and any other is
// another. A limit allows at most Max sends per
// window, optionally only of some channels. A policy maps segments to limits.
// The log of a user is the recorded sends, 12 bytes each, in time order. A
// decision is allowed, denied (by which limit, free again when) or
// unavailable.
//
// # Flow
//
//	Capper.Filter: segment of each user → rules of each segment → Store: judge and record → decisions
//
// A Limit is what configuration says; a Rule is a limit as it stands for one
// call: resolved for the call's channel and instant, in milliseconds, ready
// for Go and for Lua. Judge applies rules to one log and is pure: no clock, no
// I/O. Stores apply it atomically with the recording; redisstore does the same
// in a script, kept equal to Judge by a differential test.
//
// # The rules by which every decision can be predicted
//
//   - A send whose message is already in the log with the same channel is allowed
//     and recorded no second time (replayed). No channel is a channel, too.
//   - A rolling limit counts an entry for exactly its window: an entry of
//     window age counts no more. With a clock tolerance t (several clocks, as
//     with Redis) windows are longer by 2t, so that clocks that disagree can
//     only make a decision stricter.
//   - A calendar limit counts the entries stamped since the start of the
//     current day or week in its time zone.
//   - All limits allow: the send is recorded. Any denies: nothing is. The
//     denial names the limit that frees a slot last, and the instant when it
//     does: at that instant every limit of the user has a free slot.
//   - An entry is never stamped before the newest one of its log, so a log in
//     storage order is a log in time order.
//   - An entry that no window can see any more (Batch.Retention) is forgotten,
//     whether or not it has been removed yet.
//   - A log holds at most LogBound entries of one channel. As no limit has a
//     Max above LogBound, an entry with LogBound newer ones of its channel can
//     decide nothing, and it is forgotten.
//
// # What every store owes
//
// The Store interface says what a store does; these hold for every one, and the
// suite in storetest asks each of them:
//
//   - It decides as Judge does, each user in one atomic step with the recording.
//   - An Allowed or Replayed verdict is durable; what is not known is Unavailable.
//   - It begins with Batch.Check, and CheckRelease: what a caller gets wrong is an
//     error of that call, decides and records nothing, and leaves the store in
//     service. Users are to be distinct; one who is given twice is recorded once.
//   - It stamps with the clock it was given, and forgets by the longest retention
//     that was in force within itself.
//   - ClockTolerance is how far the clocks behind it may differ, and the only
//     place where that is said: a Capper widens windows by twice that.
//   - It remembers the messages that MessageMemory keeps.
//   - An error is nil exactly when every user was decided. Package measure counts by that:
//     ok, partial (some were decided) and error (none was). What only one kind of
//     store can count, such as errors by kind, it counts itself.
//
// What some stores can do beyond is asked through As: a store that instances
// share is a RateLimiter, so that they share the clients' budgets.
package capping
