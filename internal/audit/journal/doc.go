// Package journal writes audit records while the service decides.
//
//	call decided → in the background: users into groups → tape (memory) → each second a file of the room (disk)
//	             → rolled → carrier → location
//
// An API response never waits for the journal. In the background, a goroutine of the journal divides the users of a
// call into groups by their outcome. The journal holds the lock of the tape (the queue of records in memory) only
// while it copies a record. A slow disk or a slow audit location delays no API call.
//
// # Room
//
// A room is the spool directory of one service instance; the instance keeps the directory locked while it runs. If
// the audit location is a directory, the room (spool directory) lies below "open/", where readers see the audit file
// that is being written. If the audit location is in S3, the room (spool directory) lies below Config.Spool. The
// spool directory has the name of the instance. At its start, and whenever it begins a new audit file, an instance
// takes over the spool directories that no process has locked. The instance closes the audit files of a dead instance
// after the last complete record of each file. The instance that took over the spool directory uploads these audit
// files under the name of the dead instance.
//
// # Guarantees
//
//   - A record is on the disk, with fsync, after the next flush, which happens every second. A killed process loses the
//     records of the calls since the last flush and damages nothing.
//   - An audit file is complete at the audit location before the index contains it. The journal removes the file from
//     its spool directory only after storing the index entry of the file. A second upload of an audit file changes
//     nothing.
//   - The policy of a configuration version and every erasure are at the audit location before the records that follow
//     them.
//   - Records that the journal cannot write wait: up to 64 MiB in memory, and up to Config.MaxWaiting bytes on the
//     disk. If the memory and the disk space for records are used up, the journal drops records one by one. The
//     journal counts the dropped records, and stores their number and time in the audit file as a frame of its own,
//     the gap frame.
//
// The journal does not compress audit files, because most of their bytes are bitmaps.
package journal
