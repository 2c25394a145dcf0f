// Package journal writes audit records while the service decides.
//
//	call decided → in the background: users into groups → tape (memory) → each second a file of the room (disk)
//	             → rolled → carrier → location
//
// An answer never waits for the journal. A background goroutine sorts the users into groups. The lock of the tape is
// held only while a record is copied. A slow disk or location delays no call.
//
// # Room
//
// A room is the spool directory of one service instance, locked while the instance runs. For a location in a
// directory the room lies below open/, where readers see the file that is being written. For a location in S3 the
// room lies below the spool directory. The name of the room is the instance. At its start, and at each roll, an
// instance takes over the rooms whose lock nobody holds. The instance closes the files of a dead instance after the
// last whole frame and uploads them under the name of the instance that wrote them.
//
// # Guarantees
//
//   - A record is on the disk, with fsync, after the next flush: one second. A killed process loses the calls since
//     the last flush and damages nothing.
//   - A file is complete at the location before the index names it. The file leaves the room only after its index
//     entry is stored. A second upload of the same file changes nothing.
//   - The policy of a version and every erasure are at the location before the records that follow them.
//   - Records that cannot be written wait: up to 64 MiB in memory, and up to Config.MaxWaiting bytes on the disk.
//     Beyond that the journal drops records one by one. The journal counts the dropped records, and a gap in the file
//     holds their number and time.
//
// Files are not compressed, because most of their bytes are bitmaps.
package journal
