// Package journal writes audit records while the service decides.
//
//	call decided → in the background: users into groups → tape (memory) → each second a file of the room (disk)
//	             → rolled → carrier → location
//
// An API response never waits for the journal. A background goroutine sorts the users of a call into groups. The
// journal holds the lock of the tape (the queue of frames) only while it copies a record. A slow disk or audit location
// delays no call.
//
// # Room
//
// A room is the spool directory of one service instance, locked while the instance runs. If the audit location is a
// directory, the room lies below open/, where readers see the file that is being written. If the audit location is in
// S3, the room lies below Config.Spool. The name of the room is the name of the instance. At its start, and at each
// roll, an instance takes over the rooms whose lock no process holds. The instance closes the files of a dead instance
// after the last whole frame. The instance then uploads the files of the dead instance under the name of the dead
// instance.
//
// # Guarantees
//
//   - A record is on the disk, with fsync, after the next flush, which happens every second. A killed process loses the
//     calls since the last flush and damages nothing.
//   - A file is complete at the audit location before the index contains it. The journal removes the file from the room
//     only after storing its index entry. A second upload of a file changes nothing.
//   - The policy of a version and every erasure are at the audit location before the records that follow them.
//   - Records that the journal cannot write wait: up to 64 MiB in memory, and up to Config.MaxWaiting bytes on the
//     disk. If the memory and the disk space for records are used up, the journal drops records one by one. The journal
//     counts the dropped records, and stores their number and time as a gap in the file.
//
// The journal does not compress files, because most of their bytes are bitmaps.
package journal
