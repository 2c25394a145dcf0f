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
//
// # Messages
//
// Package campaigns keeps what was sent of each message in the embedded database:
// sends in the same batch as the logs that they are in, and answers.
//
//	Filter, Release
//	   │  Begin, Counted: is the message counted?           record.go
//	   ▼
//	each portion, under its locks: Count adds what the portion recorded or gave
//	back to the portion's batch                             sends.go
//
// # Data layout
//
//	00 FF 01 token (6) channel (1)                       record: version (1), JSON: the message, its life, answers,
//	                                                     first and last call
//	00 FF 02 token (6) channel (1) life (8) stripe (1)   sends: version (1), recorded (8), released (8)
//	00 FF 03 minute (5) token (6) channel (1)            list: nothing; the minute is that of the record's last call
//
// Sends are counted in up to 256 values, one for each stripe of users, which the
// stripe's lock protects: portions of a call that are done side by side do not wait
// for each other, and a count costs a portion one value in its batch. A stripe remembers
// the values that it wrote last, so that writing one reads nothing. The sends of a
// campaign are the sum.
//
// A life is when the record was begun: counts that were removed begin at 0, whatever a
// stripe still remembers.
//
// Programs from before there were counts look at none of these keys and leave them
// as they are; what they record and release is not counted.
//
// # What cannot be read
//
// A count that cannot be read is never in the way of a decision: nothing is added to it any
// more, and it is an error of who asks for it. It is logged once.
//
// # What is removed, and when
//
// The list is in the order of the last calls. A sweep begins at the oldest one and removes,
// with all that belongs to it, what was not called for as long as counts are kept.
//
// # Logcache
//
// Package logcache keeps logs of users in memory, in a form that the garbage
// collector does not look into.
//
// VictoriaMetrics/fastcache, which does so too, was measured in turns with it
// (fastcache v1.13.0, BenchmarkCache; processor time, the least of three rounds,
// random users, logs of 3 to 5 entries; "sends" also writes each log that it
// finds; the memory is what the process has more, for each log that is kept):
//
//	                           this package            fastcache
//	500,000 users, 192 MiB
//	  reads                    252 ns,  70 B, 100 %    515 ns, 137 B, 100 %
//	  sends                    468 ns, 146 B, 100 %    558 ns, 450 B, 100 %
//	500,000 users, 32 MiB
//	  reads                    210 ns,  78 B,  85 %    463 ns, 114 B, 100 %
//	  sends                    352 ns, 104 B,  61 %    625 ns, 145 B,  72 %
//	5 million users, 400 MiB
//	  reads                             64 B, 100 %            124 B, 100 %
//	  sends                             93 B,  82 %            163 B,  80 %
//
// fastcache finds more where it was given as many bytes because it takes half as
// many again: its index, a map of 16 bytes an entry, does not count. For the same
// memory this package finds more. It writes a log that has grown by an entry where
// it is, and is locked by the stripe that its caller holds anyway. The garbage
// collector takes 1 to 4 ms for a heap with either.
//
// # Pacerlogs
//
// Package pacerlogs keeps the logs of pacers, and the requests that took permits of
// them, in the embedded database.
//
//	TakePermits(ask)
//	   │  lock; the clock's time                            database.DB.Time
//	   │  the logs of the targets: from memory, else loaded entry.go, cache.go
//	   │  the request: is it remembered?                    request.go
//	   │  Place, in memory                                  package pacing
//	   │  what is new in the logs, and the request: one
//	   │  batch, committed without a sync                   logs.go
//	   ▼  unlock
//	one sync, which calls that end together share           database.DB.Sync
//	   ▼
//	grant
//
// One lock is over all pacers: a step takes 4 µs where the logs are in memory, and no
// call holds it while the disk syncs (BenchmarkTake). With 8 callers at once, two processors gave 20,000
// calls a second at 40 µs of processor time each, most of it the sync's, of 1 permit or of 100:
// 1.6 million permits a second (BenchmarkPermits).
//
// # Guarantees
//
//   - A grant is answered after the sync that covers it, also that of a request that was
//     granted before. What a crash takes away was never answered. A look syncs nothing.
//   - An ask is recorded in all of its logs, with its request, or not at all.
//   - When the disk refuses a write the store is out of service, for pacers as for
//     users: every call is an error until it is opened again.
//   - A log that cannot be read, or that is not as it was written, is an error of each ask for
//     it, and of no other one; it is never taken for an empty log. The status is degraded
//     and tells of it. Forgetting its pacer makes the log new.
//   - A request that cannot be read is an error of that request.
//
// # Data layout
//
//	00 "pacer " name                               the pacer's life (4); none: 0
//	05 request (16)                                version (1), instant from which on it is forgotten (8), grant as
//	                                               package pacing writes it
//	06 life (4) name message                       the log's head: version (1), instant until which it is kept (8),
//	                                               Total (8), number of runs (4)
//	06 life (4) name message number (6)            a run, as package pacing writes it; the number is that of its
//	                                               first permit
//
// A name and a message have their length (1) before them; instants are
// microseconds. A call writes the head, the run that it made longer, and those that
// it began, about 100 bytes; a log that is merged is written anew, all of it, once in
// at least 700 runs. So a log of 3,000 runs, 63 kB, costs a call no more than one of 3.
//
// The head counts the runs and the permits, and a run says its number twice, so that
// a missing or a mixed-up value is seen.
//
// A pacer's first logs lie in life 0. Forgetting removes them, and begins a life of a higher
// number than all others, whose logs lie behind all that there were: so a new log is
// read and written without touching the blocks of a table in which the old one was,
// which may be damaged. Nothing but these logs may lie behind 06.
//
// # Time
//
// There is one clock, the process's, to the microsecond, with the guard of package
// database. A clock that is set back makes callers wait: a slot is never before the
// newest one. Windows are counted by it: one that is set forward makes those under way
// shorter by as much.
//
// # What is removed, and when
//
// Logs in memory are bounded by 32 MiB; those not used for the longest time go first. In
// the database a log is kept until its newest slot is past by the longest window of
// any limits that it was judged by, and a day at least; a request until the longest wait
// that it could have been granted is past, and a minute. A sweep removes them, those
// of pacers that are not configured any more, too. It does not get behind a damaged
// block but to the logs of the next life.
package pebblestore
