// Package capping is the domain: which sends a user may still receive.
//
// # Vocabulary
//
// A send is one message that may go to one user on one channel. A message is named
// by an id and the namespace of who uses it: the same id again, of the same
// namespace and on the same channel, is the same send, and any other is another. A
// limit allows at most Max sends per window, optionally only of some channels. A
// shadow limit is judged and counted, and denies nobody. A segment is a named part
// of the users, each of whom counts as in one at most; a set is any named users,
// and a user may be in many. A policy maps segments to limits, and says from whom
// sends are withheld whatever they have received: suppression (the users of a set),
// the holdout (a share of all users, see package share) and quiet hours (see
// package quiet). The log of a user is the recorded sends, 12 bytes each, in time
// order. A decision is allowed, denied (by what, free again when) or unavailable.
//
// # Flow
//
//	Capper.Filter: segment of each user → whom the send is withheld from → rules of each
//	segment and time zone → Store: judge and record the others → decisions
//
// A call has one message and each user one set of rules: users of a segment in
// whose time zones the days, weeks and months that matter are the same have the
// same. A store is told of up to 256 sets of rules at once; a call with more is
// made in parts, side by side.
//
// A Limit is what configuration says; a Rule is a limit as it stands for one call:
// resolved for the call's channel and instant, in milliseconds, ready for Go and
// for Lua. Judge applies rules to one log and is pure: no clock, no I/O. Stores
// apply it atomically with the recording; redisstore does the same in a script,
// kept equal to Judge by a differential test.
//
// # The rules by which every decision can be predicted
//
// What denies is looked at in this order, and the first that does is named:
//
//  1. Suppression: the user is in a set that the policy suppresses on the send's
//     channel. Of several sets, the first one of the policy is named. It never ends
//     (Never).
//  2. The holdout: the user is in its share. It never ends.
//  3. Quiet hours: they are on at the instant of the decision, by the clocks of
//     their time zone or of the user's. Of several that are on, the first one of
//     the policy is named. They end at the first instant at which no hours of the
//     user's are on for the channel, so hours that meet are one night; hours that
//     together leave nothing open within a year never end.
//  4. The limits of the user's segment, by the log, which the store knows.
//
// The first three are decided before the store is asked, and it is not asked of
// whom they deny. So they hold for a send that was recorded before, too: who
// unsubscribes between two attempts is denied in the second (the recorded send
// stays counted), and after the quiet hours the same send is allowed as a replay. A
// denial writes nothing, whatever denies.
//
// A send to which limits do not apply (Send.Enforce false) is counted and passes
// limits, quiet hours, the holdout and every suppression but those that are
// EvenExempt.
//
// A set that the send needs and the generation lacks makes every user of the call
// Unavailable, and the store is not asked. A send needs the sets that are
// suppressed on its channel (an exempt one only those that are EvenExempt), and
// those of the quiet hours on its channel. Explain tells what it can, and names
// what is Missing.
//
// A user's time zone is that of the first set of a time zone, in the order of the
// manifest, that they are in, or else the policy's. It decides whose quiet hours
// and whose calendar days, weeks and months are meant where the policy says the
// user's.
//
// Of the log and the limits:
//
//   - A send whose message is already in the log with the same channel is allowed
//     and recorded no second time (replayed). No channel is a channel, too.
//   - A rolling limit counts an entry for exactly its window: an entry of window
//     age counts no more. With a clock tolerance t (several clocks, as with Redis)
//     windows are longer by 2t, so that clocks that disagree can only make a
//     decision stricter.
//   - A calendar limit counts the entries stamped since the start of the current
//     day, week (from Monday) or month in its time zone or in the user's.
//   - All limits allow: the send is recorded. Any denies: nothing is. The denial
//     names the limit that frees a slot last, and the instant when it does: at that
//     instant every limit of the user has a free slot. Where that is within quiet
//     hours it is their end instead, still a denial by the limit.
//   - A shadow limit denies nobody. A user who is allowed, and not as a replay, is
//     counted for each shadow limit that has no free slot: those whom that limit
//     alone would have denied.
//   - An entry is never stamped before the newest one of its log, so a log in
//     storage order is a log in time order.
//   - An entry that no window can see any more (Batch.Retention) is forgotten,
//     whether or not it has been removed yet.
//   - A log holds at most LogBound entries of one channel. As no limit has a Max
//     above LogBound, an entry with LogBound newer ones of its channel can decide
//     nothing, and it is forgotten.
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
//   - ClockTolerance is how far the clocks behind it may differ, and the only place
//     where that is said: a Capper widens windows by twice that.
//   - It remembers the messages that MessageMemory keeps.
//   - An error is nil exactly when every user was decided. Package measure counts
//     by that: ok, partial (some were decided) and error (none was). What only one
//     kind of store can count, such as errors by kind, it counts itself.
//
// What some stores can do beyond is asked through As: a store that instances share
// is a RateLimiter, so that they share the clients' budgets.
package capping
