// Package capping decides whether a user may receive one more send.
//
// # Vocabulary
//
// A send is one message to one user on one channel. An id and the namespace of the caller identify a message. Two sends
// to a user are the same send when message id, namespace and channel are equal.
//
// A limit allows at most Max sends per window, on all channels or on some channels. A shadow limit (limit on trial)
// counts sends and reports the users whom it would deny, but denies nobody. A segment is a named group of users, and
// each user is in at most one segment. A set is also a named group of users, but a user may be in many sets. A policy
// assigns limits to segments. A policy also withholds sends in three ways: suppression of the users in a set, the
// holdout (a share of all users, see package share), and quiet hours (see package quiet). The log of a user holds the
// recorded sends in time order, 12 bytes for each send. A decision is allowed, denied or unavailable. A denial has a
// cause, and the time at which a slot is free.
//
// # Flow
//
//	Capper.Filter: segment of each user → users from whom the send is withheld → rules of each
//	segment and time zone → Store: judge and record the other users → decisions
//
// A filter call is about one message. For each user, the store applies one list of rules. Users of one segment have the
// same rules when their time zones have the same current day, week and month. A store takes up to 256 lists of rules in
// one batch. The Capper splits a call with more lists of rules into batches that run in parallel.
//
// A Limit is a limit as an operator configured it. A Rule is a Limit prepared for the channel and instant of one call.
// The times in a Rule are in milliseconds, so that Go code and Lua scripts can apply the Rule. The function Judge
// applies rules to one log, and uses neither a clock nor I/O. Stores judge and record a send in one atomic step.
// Package redisstore judges sends in a Lua script, and a differential test compares the script with Judge.
//
// # Order of the decision
//
// A decision names the first of these causes that denies the send:
//
//  1. Suppression: the user is in a set that the policy suppresses on the send's channel. If a user is in several
//     suppressed sets, the decision names the set that the policy lists first. A suppression has no end, so the
//     decision's FreesAt is Never.
//  2. The holdout: the user is in the holdout's share of all users. The holdout never ends.
//  3. Quiet hours: at the instant of the decision, the local time is within the quiet hours. The local time is the time
//     in the quiet hours' own time zone, or in the user's time zone. Quiet hours end at the first instant at which none
//     of the user's quiet hours for the channel are on. If quiet hours leave no minute open within a year, they count
//     as quiet hours that never end.
//  4. The limits: a limit of the user's segment has no free slot in the user's log.
//
// The Capper checks suppression, the holdout and quiet hours before the call of the store. Suppression, the holdout and
// quiet hours also deny a send that an earlier call recorded. For example, a user may unsubscribe after an attempt that
// recorded a send. After the unsubscription, a second attempt is denied, but limits still count the recorded send. A
// denial writes nothing to the store.
//
// A send with Send.Enforce false is exempt from limits, but counts for later limits. For an exempt send, the Capper
// ignores limits, quiet hours, the holdout and every suppression without EvenExempt.
//
// If a generation (published version) of segments lacks a set that the send needs, every user of the call is
// Unavailable. To decide a send, the Capper needs the sets that are suppressed on the send's channel, and the sets to
// which quiet hours apply. An exempt send needs only the suppressed sets with EvenExempt (which suppress exempt sends
// too). If a set is missing, Explain still explains all other reasons for a decision, and lists the missing sets.
//
// A user's time zone comes from the first time zone set in the manifest that contains the user. A user who is in no
// time zone set has the time zone of the policy.
//
// # Rules for logs and limits
//
//   - A send that is already in the log is allowed and not recorded again (Replayed).
//   - A rolling limit counts a log entry for exactly the length of its window. A clock tolerance t makes rolling
//     windows longer by 2t, so that differing clocks never make a decision less strict.
//   - A calendar limit counts the log entries since the start of the current day, week (from Monday) or month.
//   - A send is recorded when every limit allows the send. A denial names the limit whose slot becomes free last, and
//     the first instant at which every limit has a free slot. If slots become free within quiet hours, the denial names
//     the end of the quiet hours instead.
//   - A shadow limit (limit on trial) denies nobody. A shadow limit counts the users with the outcome Allowed whom it
//     would have denied, but no users with the outcome Replayed.
//   - A new log entry never gets an earlier time than the newest entry of the log.
//   - Decisions ignore log entries older than Batch.Retention, even before the store has removed them.
//   - A log keeps the newest LogBound entries of each channel. No limit has a Max above LogBound, so log entries older
//     than the newest LogBound ones cannot change a decision.
//
// # Promises of every store
//
// The suite in storetest tests each store for these promises:
//
//   - A store decides like Judge, and decides and records each user in one atomic step.
//   - An Allowed or Replayed verdict is durable. A user whose result is unknown is Unavailable.
//   - A store first checks the arguments of a call with Batch.Check or CheckRelease, so that a mistake in the arguments
//     fails only this call.
//   - A store stamps sends with the clock from its configuration. A store deletes log entries that are older than the
//     longest retention of its recent batches.
//   - ClockTolerance is the largest difference between the clocks that stamp sends.
//   - A store keeps the texts of the messages that the type MessageMemory selects, and counts the sends of these
//     messages.
//   - The error of a call is nil exactly when the store decided every user. From the error of a call, package measure
//     derives the result of the call in metrics: "ok", "partial" or "error".
//
// The function As finds optional interfaces that only some stores implement. For example, a store that several
// instances share is a RateLimiter.
package capping
