// Package capping decides which sends a user may still receive.
//
// # Vocabulary
//
// A send is one message to one user on one channel. An id and the caller's namespace name a message. The
// same id in the same namespace on the same channel is the same send.
//
// A limit allows at most Max sends per window, on all channels or on some. A shadow limit counts and judges
// sends but denies nobody. A segment is a named group of users, and a user has at most one segment. A set is
// a named group of users too, and a user may be in many sets. A policy maps segments to limits. A policy
// also withholds sends, by suppression (the users of a set), by the holdout (a share of all users, see
// package share) and by quiet hours (see package quiet). The log of a user holds the recorded sends in time
// order, 12 bytes for each. A decision is allowed, denied (with the cause and the time when a slot is free)
// or unavailable.
//
// # Flow
//
//	Capper.Filter: segment of each user → users from whom the send is withheld → rules of each
//	segment and time zone → Store: judge and record the other users → decisions
//
// A call has one message, and each user has one set of rules. Users of one segment share their rules when
// their time zones have the same current day, week and month. A store takes up to 256 sets of rules in one
// batch; a call with more is split into batches that run in parallel.
//
// A Limit is part of the configuration. A Rule is a limit resolved for the channel and instant of one call,
// in milliseconds, for Go and for Lua. Judge applies rules to one log as a pure function: no clock, no I/O.
// Stores judge and record in one atomic step. Package redisstore judges in a script, and a differential test
// compares that script with Judge.
//
// # Order of the decision
//
// A decision names the first of these causes that denies the send:
//
//  1. Suppression: the user is in a set that the policy suppresses on the send's channel. The first
//     such set of the policy is named. A suppression never ends (Never).
//  2. The holdout: the user is in the holdout's share. The holdout never ends.
//  3. Quiet hours: the hours are on at the instant of the decision, in the hours' own time zone or the
//     user's zone. Quiet hours end at the first instant at which none of the user's quiet hours are on for
//     the channel. Quiet hours without an open minute within a year count as never ending.
//  4. The limits of the user's segment, applied to the log in the store.
//
// The service checks the first three before it asks the store. They also deny a send that was recorded before. A user
// who unsubscribes between two attempts is denied in the second attempt, while the recorded send still counts. A denial
// writes nothing.
//
// A send without limits (Send.Enforce false) is counted. Limits, quiet hours, the holdout and every
// suppression except the EvenExempt ones are ignored for such a send.
//
// A generation that lacks a set which the send needs makes every user of the call Unavailable. A send needs
// the suppressed sets and the quiet hours' sets of its channel; an exempt send needs only the EvenExempt
// suppressed sets. Explain answers as far as possible and lists the sets that are Missing.
//
// A user's time zone is the first time zone set in the manifest that contains the user, otherwise the
// policy's zone.
//
// # Rules for logs and limits
//
//   - A send that is already in the log is allowed and not recorded again (Replayed).
//   - A rolling limit counts an entry for exactly its window. A clock tolerance t makes windows 2t
//     longer, so that differing clocks can only make a decision stricter.
//   - A calendar limit counts the entries since the start of the current day, week (from Monday) or
//     month.
//   - A send is recorded when every limit allows it. A denial names the limit that frees a slot last,
//     and the instant at which every limit has a free slot. An instant within quiet hours moves to
//     their end.
//   - A shadow limit denies nobody. The limit counts each allowed user, without replays, whom it would
//     have denied.
//   - An entry is never stamped before the newest entry of its log.
//   - An entry older than Batch.Retention is forgotten, whether or not it has been removed.
//   - A log keeps the newest LogBound entries of each channel. No limit has a Max above LogBound, so
//     older entries cannot matter.
//
// # Promises of every store
//
// The suite in storetest tests each store for these promises:
//
//   - A store decides as Judge does, and decides and records each user in one atomic step.
//   - An Allowed or Replayed verdict is durable. An unknown result is Unavailable.
//   - Batch.Check and CheckRelease run first, so that a caller's mistake fails only that call.
//   - A store stamps sends with the clock from its configuration and deletes by the longest recent
//     retention.
//   - ClockTolerance is the largest difference between the store's clocks.
//   - A store remembers the messages that MessageMemory keeps.
//   - An error is nil exactly when every user was decided. Package measure counts calls as ok, partial
//     and error by this rule.
//
// As finds abilities that only some stores have. A store that several instances share is a RateLimiter, for example.
package capping
