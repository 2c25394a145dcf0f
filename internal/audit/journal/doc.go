// Package journal writes audit records while the service decides.
//
//	call decided → in the background: users into groups → tape (memory) → each second a file of the room (disk)
//	             → rolled → carrier → location
//
// An API response never waits for the journal. In the background, a goroutine of the journal divides the users of a
// call into groups by their outcome. The journal holds the lock of the tape (the queue of records in memory) only while
// the journal copies a record. A slow disk or a slow audit location delays no API call.
//
// # Room
//
// A room is the spool directory of one service instance. The instance keeps the directory locked while the instance
// runs. If the audit location is a directory, the room (spool directory) lies below "open/", where readers see the
// audit file that is being written. If the audit location is in S3, the room (spool directory) lies below Config.Spool.
// The spool directory has the name of the instance. At its start, and whenever it begins a new audit file, an instance
// takes over the spool directories that no process has locked. If an instance has died, another instance ends each of
// its audit files after the last complete record. The other instance then uploads the files under the name of the dead
// instance.
//
// # Guarantees
//
//   - A flush writes all records to the disk, with fsync, every second. A killed process loses the records of the calls
//     since the last flush, and damages nothing.
//   - An audit file is complete at the audit location before the index contains the file. The journal removes an audit
//     file from the spool directory only after storing the file's index entry. A second upload of an audit file changes
//     nothing.
//   - The journal stores the policy of a configuration version, and every erasure, at the audit location before it
//     stores later records.
//   - Records that the journal cannot write or upload wait in memory (up to 64 MiB) and on the disk (up to
//     Config.MaxWaiting bytes). If the limit in memory or the limit on the disk is reached, the journal drops further
//     records. The journal stores the number and the time of the dropped records in the audit file, as a gap frame
//     (entry about lost records).
//
// The journal does not compress audit files, because most of their bytes are bitmaps.
package journal
