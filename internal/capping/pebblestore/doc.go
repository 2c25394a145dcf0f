// Package pebblestore keeps the logs in an embedded Pebble database: one
// process, one directory, nothing else to run.
//
//	Filter(batch)
//	   │  copy the users, arrange them by stripe            plan.go
//	   ▼
//	portions of about 1,024 users, two or more at once      call.go
//	   │  lock the portion's stripes                        stripe.go
//	   │  each user's log: from the cache, else by a seek   logcache, database.Reader
//	   │  step: judge, and what the log becomes             filter.go, package capping
//	   │  write the cache through, commit without a sync    value.go, database.DB
//	   ▼  unlock
//	remember the message id                                 message.go
//	   ▼
//	one sync, which calls that end together share           database.DB.Sync
//	   ▼
//	verdicts
//
// Permits of pacers take a way of their own, in package pacerlogs, and share the
// syncs.
//
// Below it, package database knows keys, durability and damage, and no rule;
// package directory what Pebble writes to. Beside the calls one goroutine tends
// the store: it looks after the files, goes on with an upgrade, and sweeps.
//
// # Guarantees
//
//   - Decisions are those of capping.Judge, each user's atomic with its
//     recording. The locks are per stripe of users, always taken in ascending
//     order, and given back after about a thousand users, so that a large call
//     does not hold up a small one.
//   - Allowed and Replayed are answered after the fsync that covers them. A
//     call makes one sync, its last step; calls that run together share it.
//     What a crash takes away was never answered.
//   - When the disk refuses a write, the call's users are unavailable and the
//     store is out of service until it is opened again: nobody knows which
//     writes the disk holds. The process lives on and logs can still be read.
//   - A log that cannot be read makes its user unavailable, nobody else, and a
//     damaged block of a table those whose logs may be in it. Erasing the user
//     makes the log new.
//   - What a call records or gives back of a message that is remembered is counted in the
//     batch that has it in the logs, so counts and logs are equal after a crash, too.
//   - A second process on the directory gets an error and changes nothing.
//
// # Data layout
//
//	00 "format"      the format marker: what everything else looks like
//	00 "upgrade"     the format that logs are still in (1), the key from which on; only while there are such logs
//	00 "id"          the store's, as in the file beside the directory
//	00 "mark"        counts up while the store is used (8), instant (8)
//	00 "retention"   milliseconds for which logs were kept by the last policy
//	00 "retentions"  those and the longer ones before, each with until when it was in force
//	01 user (4)      the user's log: the version of its format (1), entries as package capping writes them
//	02 token (6)     instant of expiry (8), message id: a message without a namespace
//	03 token (6)     instant of expiry (8), 0xFF, namespace, 0xFF, message id
//	04 user (4)      the user's log was written since its block was damaged
//	00 FF …          what was sent of each message: see package campaigns
//	05, 06, 00 "pacer …"  requests for permits, logs of pacers, and how their keys begin: see package pacerlogs
//
// The bucket, the number of users whose logs share a key, is 1 here and more
// in Redis: Pebble stores the common prefix of neighbouring keys once, so that a
// bucket would save little, and each send would rewrite all of it. A prototype
// with 5 million users of three entries each, 10,000 users per synced call,
// decided 350,000, 144,000 and 78,000 random users a second with buckets of 1, 8
// and 32; of ascending calls of one user in 27 it decided 477,000, 175,000 and
// 144,000 with buckets of 1, 16 and 64.
//
// # Formats, and how to make the next one
//
// Format 1 had no version in the value of a log. Format 2 has, at a byte a log:
// of two formats in one store each value says by itself how to read it, so that
// a store is upgraded while it serves. When a store of format 1 is opened,
//
//   - the marker becomes that of format 2, durably, and "upgrade" is written, in
//     one batch: from then on a program that knows only format 1 refuses the
//     store, as it demands its own marker;
//   - calls read both formats and write format 2;
//   - the tending goroutine walks over all logs, 20,000 keys a second, rewrites
//     those in format 1 under the locks that calls take, past the cache, and notes
//     in "upgrade" how far it is. The write-ahead log is in order, so that the note
//     is never ahead of the logs: after a crash the walk goes on there;
//   - after the last log "upgrade" is removed. What cannot be read, damaged
//     blocks and values that are not logs, is left as it is.
//
// There is no way back but a copy of the directory from before.
//
// The next format of logs needs: its number as logVersion, a case in decodeLog
// and the change in beginLog (value.go); newestFormat (database/marker.go); a
// store that the last program of this format wrote in testdata, and
// TestUpgradeWhileServing and TestUpgradeKilled over it. A program that no longer
// reads an old format raises oldestFormat, and refuses a store in which an
// upgrade from it has not ended. The first byte of a message's value is 0 in all
// formats so far; another one can be its version.
//
// Logs of pacers, and requests, have versions of their own in each value, and came
// without a new format: programs from before there were pacers read and sweep 01 to 04
// alone, and leave what lies behind as it is. Under such a program nobody paces; when
// this one is back, logs and requests are what they were, but for what has expired.
//
// A program from before there were namespaces reads and sweeps 01 and 02 alone,
// which is why messages lie in 02 and 03; such programs know only format 1.
//
// # Backups
//
// Backup writes an archive of the database as it is at one instant (database.DB.Copy, package backup): a
// copy in a folder of the directory, its tables links, is read and removed. What a disk refuses there fails the
// backup; package directory keeps it apart from writes that take the store out of service. A store that was put
// back knows from when sends are missing, and says so as long as a window could see them.
//
// # Reading and writing
//
// Portions of a call are done as many at once as there are processors, each in the
// order of the database. A log comes from the stripe's cache, which is written
// through, or else by a seek with the whole key as prefix. Bloom filters spare
// the upper levels; the bottom level has none, as those of 270 million users
// would need a third of a gigabyte of block cache to help. Changed logs of a
// portion are committed together, without a sync, before its locks are given back;
// one sync of an empty record at the end makes all of them durable, as the
// write-ahead log is in order.
//
// # What is removed, and when
//
// A log that is written loses what no window can see. Logs of users who are
// never sent to again, and expired message ids, are removed by a sweep that
// looks at 20,000 keys a second, a minute's rest after each pass: an idle store
// becomes empty. Another one does so with what pacers left.
//
// What windows can see is judged by the longest retention that was in force
// within itself: a policy that looks back less far, because a limit was left out
// by mistake or for a moment, forgets nothing that the one before needs. The
// longer retention falls when it has itself passed since a call last had it.
// Which were in force is noted ahead by an hour, in a value that a call writes
// in the same write-ahead log as its sends and before them.
package pebblestore
