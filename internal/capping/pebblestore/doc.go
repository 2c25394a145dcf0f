// Package pebblestore is the embedded store. It keeps the logs of users and pacers, and the counts of messages,
// in a Pebble database: one process, one directory, no server. It also keeps the changes that calls make to sets.
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
// Calls for permits load the logs of their targets, place permits in memory under one lock, commit one batch
// (pacerlogs.go) and share the same syncs. Package database below this package knows keys, durability and damage,
// but no rules. One background goroutine checks the files, continues upgrades and runs the sweep (sweep.go).
//
// # Promises
//
//   - Decisions are those of capping.Judge. Each user is decided and recorded in one atomic step, under a lock per
//     stripe of users. Locks are released after about a thousand users, so that a large call does not block a
//     small one.
//   - Allowed, Replayed and grants of permits are returned after the fsync that covers them. A crash loses only
//     sends whose verdict was never returned.
//   - After a refused disk write the store is out of service until it is opened again, because the content of the
//     disk is unknown. The process continues, and logs can still be read.
//   - An unreadable log makes only its user unavailable. A damaged block of a table makes the users unavailable
//     whose logs may be in the block. Erasing a user replaces the log.
//   - An unreadable log of a pacer fails each ask for that log, and no other ask. Forgetting the pacer replaces it.
//   - A change to a set is in memory when Change returns, and on the disk. So no later decision lacks the change.
//   - Open refuses a store with an unreadable change, because the change could be of any set and any user. An operator
//     may accept the loss with the file ACCEPT-LOST-CHANGES. An open store writes such a change again from memory.
//   - Send counts of a message change in the batch that changes the logs, so that both are equal after a crash. An
//     unreadable count never blocks a decision.
//   - A second process on the directory gets an error and changes nothing.
//
// # Data layout
//
//	00 "format"      the format marker, which describes all other keys
//	00 "upgrade"     while logs are in an older format: that format (1), the first key not yet rewritten
//	00 "id"          the store's id, as in the file beside the directory
//	00 "mark"        a number that increases while the store is used (8), instant (8)
//	00 "retention"   milliseconds for which the last policy kept logs
//	00 "retentions"  the last and longer earlier retentions, each with the time until which it was in force
//	00 "pacer " name                           the pacer's life (4); none: 0
//	00 "records"                               the numbers of pacers' records
//	00 FF 01 token (6) channel (1)                       record of a message: version (1), JSON
//	00 FF 02 token (6) channel (1) life (8) stripe (1)   sends: version (1), recorded (8), released (8)
//	00 FF 03 minute (5) token (6) channel (1)            list of messages by last call; call, asked users, text
//	00 FF 07 token (6)        title of a message: version (1), JSON
//	00 FF 04                  the instants up to which changes to sets were removed; see live.AppendFreed
//	00 FF 05 number (8)       record of a call that changed a set for few users; see live.AppendRecord
//	00 FF 06 number (8)       full record of changes to a set: of a call with many users, or of several calls
//	00 FF 08 request (16)     lease of a request for permits: version (1), time of its end (8), the call
//	01 user (4)      the user's log: version of its format (1), entries in the format of package capping
//	02 token (6)     instant of expiry (8), message id: a message without a namespace
//	03 token (6)     instant of expiry (8), 0xFF, namespace, 0xFF, message id
//	04 user (4)      the user's log was written after its block was damaged
//	05 request (16)  version (1), time of expiry (8), grant in the format of package pacing
//	06 life (4) name message             head of a pacer's log: version (1), end (8), total (8), number of runs (4)
//	06 life (4) name message number (6)  a run in the format of package pacing
//
// A user takes 8 bytes of a key in a store for images, that is for all kinds of ids but dense, and nothing else
// differs.
// The format marker and the file beside the directory name the kind of the ids and the check of their key, and Open
// rejects others.
//
// # Removal
//
// A write drops the entries of its log that no window can see. The sweep removes expired logs, message ids, counts
// and logs of pacers, 20,000 keys a second, so that an idle store becomes empty. The store deletes by the longest
// retention that was in force recently: a limit that is missing for a moment deletes nothing.
//
// # More
//
// docs/design/embedded.md explains the formats and upgrades, the reasons for the layout, backups, the caches with
// their measured figures, and pacers.
package pebblestore
