// Package pebblestore is the embedded store of capper. The embedded store keeps the logs of users and pacers, and the
// counts of messages, in a Pebble database: one process, one directory, no server. The embedded store also keeps live
// changes (changes of sets by API calls).
//
//	Filter(batch)
//	   │  copy the users, arrange them by stripe            plan.go
//	   ▼
//	portions of about 1,024 users, two or more at once      call.go
//	   │  lock the portion's stripes                        stripe.go
//	   │  each user's log: from the cache, else by a seek   logcache.go, database.Reader
//	   │  step: judge, and compute the new log              filter.go, package capping
//	   │  write the cache through, commit without a sync    value.go, database.DB
//	   ▼  unlock
//	remember the message id                                 message.go
//	   ▼
//	one sync, shared by calls that end together             database.DB.Sync
//	   ▼
//	verdicts
//
// A permit request loads the logs of its pacers (named rate limits), places the permits in memory under one lock, and
// commits one batch (pacerlogs.go). Permit requests share their syncs to the disk with other calls. Package database,
// below this package, handles keys, durability and damaged data, but applies no rules. One background goroutine checks
// the files, continues upgrades of the format and removes expired data (the sweep, sweep.go).
//
// # Promises
//
//   - The store returns the verdicts of the function capping.Judge. The store decides about each user and records the
//     send in one atomic step. While the store decides about a user, it holds the lock of the user's stripe (group of
//     users with a common lock). A call releases its locks after about a thousand users, so that a large call does not
//     block a small one for long.
//   - The store returns Allowed, Replayed and grants of permits only after an fsync that makes the decisions durable. A
//     crash can lose a send only if the store has not returned a verdict for it.
//   - After the disk has refused a write, the store is out of service until it is opened again, because the content of
//     the disk is unknown. The process continues, and calls can still read logs.
//   - If the log of a user is unreadable, only this user is unavailable. If a block of a Pebble table is damaged, all
//     users whose logs may be in the block are unavailable. The erasure of a user replaces the user's unreadable log.
//   - If the log of a pacer is unreadable, only the permit requests that need this log fail. A reset of the pacer
//     replaces the pacer's unreadable log.
//   - When the method Change returns, the change of the set is in memory and on the disk, so every later decision takes
//     the change into account.
//   - Open returns an error for a store with an unreadable live change, because the change could be of any set and any
//     user. If an operator accepts the loss of unreadable live changes with the file ACCEPT-LOST-CHANGES, Open
//     succeeds. If a live change becomes unreadable while the store is open, the store writes the change again from
//     memory.
//   - A message's counts of sends change in the same batch as the logs, so that counts and logs agree after a crash. An
//     unreadable count of sends never prevents a decision.
//   - A second process that opens the directory gets an error and changes nothing.
//
// # Data layout
//
//	00 "format"      the format marker, which describes all other keys
//	00 "upgrade"     during an upgrade: the older format (1), the first key that is not yet rewritten
//	00 "id"          the store's id, as in the file beside the directory
//	00 "mark"        a number that increases while the store is used (8), instant (8)
//	00 "retention"   retention of the last policy in milliseconds
//	00 "retentions"  retentions of the last and of earlier policies, each with the end of its time in force
//	00 "channels"    channels that stored sends may contain: version (1), JSON
//	00 "pacer " name                           number of the pacer's life (4), which a reset changes; none: 0
//	00 "reset " name                           number of the life (4), time of the last reset (8); none: unknown
//	00 "records"                               the numbers of pacers' records
//	00 FF 01 token (6) channel (1)                       record of a message: version (1), JSON
//	00 FF 02 token (6) channel (1) life (8) stripe (1)   sends: version (1), recorded (8), released (8)
//	00 FF 03 minute (5) token (6) channel (1)            list of messages by last call; call, asked users, text
//	00 FF 07 token (6)        title of a message: version (1), JSON
//	00 FF 04                  the instants up to which changes to sets were removed; see live.AppendFreed
//	00 FF 05 number (8)       record of a set change by a call with few users; see live.AppendRecord
//	00 FF 06 number (8)       full record of set changes: of a call with many users, or of several calls
//	00 FF 08 request (16)     lease of a permit request: version (1), end time (8), the permit request
//	01 user (4)      the user's log: version of its format (1), entries in the format of package capping
//	02 token (6)     instant of expiry (8), message id: a message without a namespace
//	03 token (6)     instant of expiry (8), 0xFF, namespace, 0xFF, message id
//	04 user (4)      marker: the user's log was written again after damage of its block
//	05 request (16)  version (1), time of expiry (8), grant in the format of package pacing
//	06 life (4) name message             head of a pacer's log: version (1), end (8), total (8), number of runs (4)
//	06 life (4) name message number (6)  a run in the format of package pacing
//
// In a store whose ids are not dense, users are id images (64-bit numbers that stand for ids). An id image takes 8
// bytes in a database key. Apart from users' ids, keys and values are the same as in a store with dense ids. The format
// marker and the file beside the directory name the kind of ids, and a check word of the key that makes id images. If
// the configuration has another kind of ids or another key, Open returns an error.
//
// # Removal
//
// When the store writes a user's log, it drops the entries that no limit counts any more. The sweep, a slow walk over
// all keys, removes expired logs, message ids, counts and logs of pacers. The sweep reads 20,000 keys a second, so that
// an idle store becomes empty. The store keeps sends for the longest retention (storage time of sends) that was
// recently in force. If a limit is missing from the configuration for a moment, the store keeps the sends that this
// limit needs.
//
// # More
//
// docs/design/embedded.md explains the formats and upgrades, the reasons for the layout, backups, the caches with
// measured figures, and pacers.
package pebblestore
