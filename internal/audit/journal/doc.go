// Package journal writes the audit while the service decides.
//
//	call decided → beside it: users into groups → tape (memory) → each second a file of the room (disk)
//	             → rolled → carrier → location
//
// An answer never waits for any of it: the goroutine that sorts users into groups is
// beside the call, the tape's lock is held while a record is copied, and what the disk
// or the location do holds nobody up.
//
// # Room
//
// A room is the directory of one life of a service, locked while it lives: below open/ of
// a directory, where readers see the file that is being written, or below the spool, of
// S3. Its name is the instance. Whoever starts, and whoever rolls, takes the rooms that
// nobody holds, closes their files behind the last whole frame, and brings them to
// their place under the name of who wrote them.
//
// # Guarantees
//
//   - What was recorded a flush ago (a second) is on the disk, with fsync; a process that
//     is killed loses the calls since then, and damages nothing.
//   - A file is whole at its place before the index names it, and there and in the index
//     before it goes from the room. Bringing it twice changes nothing.
//   - The policy of a version, and an erasure, are at their place before the records
//     after them.
//   - What cannot be written waits: 64 MiB in memory, and Config.MaxWaiting on the disk.
//     Beyond that records are lost, one by one; they are counted, and a gap in the file says
//     how many were lost and when.
//
// Files are not compressed: what is large in them is bitmaps.
//
// journal is what callers see; beside runs what they do not wait for, groups and radix sort
// users, tape holds frames, flush and room write them, carry and finish bring files to
// their place, documents are policies and erasures, status tells of all that.
package journal
