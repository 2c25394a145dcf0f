// Package pebblestore keeps the logs in an embedded Pebble database: one
// process, one directory, nothing else to run.
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
//   - A second process on the directory gets an error and changes nothing.
//
// # Data layout
//
//	00 "format"      what everything else looks like; an unknown one is refused
//	00 "id"          the store's, as in the file beside the directory
//	00 "mark"        counts up while the store is used (8), instant (8)
//	00 "retention"   milliseconds for which logs were kept by the last policy
//	00 "retentions"  those and the longer ones before, each with until when it was in force
//	01 user (4)      the user's log, entries as package capping writes them
//	02 token (6)     instant of expiry (8), message id: a message without a namespace
//	03 token (6)     instant of expiry (8), 0xFF, namespace, 0xFF, message id
//	04 user (4)      the user's log was written since its block was damaged
//
// A program from before there were namespaces reads and sweeps 01 and 02 alone:
// it shows a message of 03 as one that was not remembered, and its replays as
// sends of another message.
//
// The bucket, the number of users whose logs share a key, is 1 here and more
// in Redis: Pebble stores the common prefix of neighbouring keys once, so that a
// bucket would save little, and each send would rewrite all of it. A prototype
// with 5 million users of three entries each, 10,000 users per synced call,
// decided 350,000, 144,000 and 78,000 random users a second with buckets of 1, 8
// and 32; of ascending calls of one user in 27 it decided 477,000, 175,000 and
// 144,000 with buckets of 1, 16 and 64.
//
// # Reading and writing
//
// A call copies its users, sorted by stripe, and does them in chunks of some
// stripes, as many at once as there are processors and each in the order of
// the database. A log comes from the stripe's cache, which is written through,
// or else by a seek with the whole key as prefix. Bloom filters spare the upper
// levels; the bottom level has none, as those of 270 million users would need a
// third of a gigabyte of block cache to help.
// Changed logs of a chunk are committed together, without a sync, before its
// locks are given back; one sync of an empty record at the end makes all of
// them durable, as the write-ahead log is in order.
//
// # Stores that are not what they were
//
// Pebble makes a database where it finds none, and opens one whose write-ahead
// log is gone without what was in it. Both would allow everybody again, so:
//
//   - Beside the directory is a file PATH.id with the store's id and its mark, a
//     number that counts up at each start, at each close and once a minute of
//     use, in the database first. It stays when the directory is emptied,
//     replaced or on a volume that is not mounted: Open then refuses, as it
//     does when the database's mark is behind, which is an older copy or one
//     that has lost its end. Where the parent directory is on the same volume,
//     only Config.MustExist helps.
//   - In the directory is a file FILES, the names of the write-ahead logs and
//     manifests, noted after they are made and before they are removed. Open
//     demands them. Notes that do not know the manifest in use are from before
//     an earlier version of capper had the store open, and are not asked.
//   - Each second a store that is open looks whether those files still are in
//     its directory, and is out of service when they are not.
//
// An error names the file to remove for who wants to go on all the same.
//
// # Damaged blocks
//
// Pebble takes tens of milliseconds for each look at a damaged block, as it
// tries every bit of it. So the first one leads to a survey, which walks towards
// the damage from both sides; from then on the users in between are unavailable
// without a look. What is written of such a user, by a call that finds the log
// in the cache or by an erasure, is noted as mended and later read by a lookup
// that ends at the newest value, above the block; for that a log that is removed
// is written as an empty value. A damaged filter costs nobody anything but time:
// logs are read without filters then.
//
// # When the disk is full or broken
//
// Pebble panics when its write-ahead log or manifest cannot be written, in part
// with a mutex in a state that ends the process whoever recovers. So it never
// sees such an error: between it and the file system is a layer (disk) that, on
// the first refused write, puts the store out of service and freezes the files.
// From then on nothing in the directory changes, as after a power cut, while
// Pebble is told that all went well; no call believes it, as each asks after its
// sync whether the store is still in service. What was answered was synced
// before and is there when the store is opened with space. What was committed
// and not answered can be seen in the logs until then.
//
// A table that cannot be written is no outage: its content is in the
// write-ahead log and in memory. Pebble tries again once a second, one line a
// minute says so, the store is "degraded", and well when there is space again.
//
// Any other panic in a call, Pebble's or our own, also puts the store out of
// service, with its stack in the log: what it left half done, a mutex included,
// is unknown. So nobody calls Pebble any more, for reading neither, and Close
// only freezes the files and gives back the directory. A "fatal" error of
// Pebble's is the same; its goroutine is stopped for good, not unwound. Only a
// panic in one of Pebble's own goroutines ends the process.
//
// Open first writes 4 MiB and removes them, so that a full disk is told as
// such. It ends with the first write that is refused while the database is
// being opened, which Pebble itself would try again without end, and with its
// context. What the attempt wrote of a table is removed, so that a service that
// is restarted again and again does not use up the space that is being made for
// it. Close is bounded, too.
//
// # Time
//
// There is one clock, the process's. An entry is never stamped before the
// newest one of its log, so a clock that is set back makes decisions stricter
// and never breaks the order.
//
// A clock that is far ahead would mute users for as long, and forget what the
// others have. So nothing is stamped, and nothing forgotten, by a clock that is
// more than a day ahead of the file system's time at the start and of what has
// passed since by the processor's count: the store is down and says why. At a
// start, where the file system has the same clock as a rule, it is compared with
// that of the last mark: more than a day behind it, or 400 days ahead, is refused.
//
// # What is removed, and when
//
// A log that is written loses what no window can see. Logs of users who are
// never sent to again, and expired message ids, are removed by a sweep that
// looks at 20,000 keys a second, a minute's rest after each pass: an idle store
// becomes empty.
//
// What windows can see is judged by the longest retention that was in force
// within itself: a policy that looks back less far, because a limit was left out
// by mistake or for a moment, forgets nothing that the one before needs. The
// longer retention falls when it has itself passed since a call last had it.
// Which were in force is noted ahead by an hour, in a record that a call writes
// in the same log as its sends and before them.
package pebblestore
