// Package database is the Pebble database of the embedded store: opening it and
// knowing it again, its format marker and keys, writing so that it is durable,
// reading around damage, and being out of service. It knows which value is which
// user's, and nothing of what the values mean; the data layout is in the store's
// doc.go. Of pacers it knows where their keys are, and which logs could not be read.
//
//	Open ─► probe ─► notes.Check ─► pebble.Open ─► format marker ─► identity ─► upgrade begun
//	call ─► DB.Write ─► Commit … Commit ─► Sync             out of service: an error, at once
//	     └► DB.Read  ─► Reader.Value ─► survey of a damaged block
//
// # Stores that are not what they were
//
// Pebble makes a database where it finds none, and opens one whose write-ahead
// log is gone without what was in it. Both would allow everybody again, so:
//
//   - Beside the directory is a file PATH.id with the store's id and its mark, a
//     number that counts up at each start, at each close, once a minute of use
//     and when the store comes to rest, in the database first. It stays when the directory is emptied,
//     replaced or on a volume that is not mounted: Open then refuses, as it
//     does when the database's mark is behind, which is an older copy or one
//     that has lost its end, also by damage that looks like a crash. Where the parent directory is on the same volume,
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
// A refused write puts the store out of service and freezes its files; package
// directory says how. No call believes what Pebble is told from then on, as each
// asks after its sync whether the store is still in service. What was answered
// was synced before and is there when the store is opened with space. What was
// committed and not answered can be seen in the logs until then.
//
// A table that cannot be written is no outage: its content is in the
// write-ahead log and in memory. Pebble tries again once a second, one line a
// minute says so, the store is "degraded", and well when there is space again.
//
// Any other panic in a call, Pebble's or our own, also puts the store out of
// service, with its stack in the log: what it left half done, a mutex included,
// is unknown. So nobody calls Pebble any more, not for reading either, and Close
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
// # Backup
//
// Package backup is the archive of an embedded store: a tar file that says itself whether
// it is whole.
//
//	files of the database, as they were at one instant
//	FILES           the write-ahead logs and manifests among them, which a start demands
//	marker.…        what leads to the rest; without it there is no database
//	manifest.json   which store, until when, by which program; each file's size and SHA-256
//	SHA256          that of all bytes before
//
// The archive ends with the sum, so it is written in one pass, to whatever takes bytes, and
// one that was cut off has no end. The bytes from the sum's header on are determined by the
// sum: Verify compares all of them, so a byte that is different anywhere is noticed, also
// where tar would not look.
//
// Extract makes a directory of an archive that is whole. What leads to the rest comes last: of an
// extraction that was killed a service says what is missing, and does not start.
//
// # Directory
//
// Package directory is the directory that a database lives in: what Pebble
// writes to, and what must be found in it again. It knows files, no keys.
//
//	Pebble ──► Disk ──► file system      a refused write freezes all files, as a power cut does
//	            └─────► FILES            which write-ahead logs and manifests there must be
//
// Pebble panics when its write-ahead log or manifest cannot be written, in part
// with a mutex in a state that ends the process whoever recovers. So it never
// sees such an error: Disk reports it and freezes the files. From then on nothing
// in the directory changes, while Pebble is told that all went well.
//
// Pebble also opens a database whose write-ahead log is gone without what was in
// it. So the file FILES has the names of the write-ahead logs and manifests,
// noted after they are made and before they are removed; a start demands them.
package database
