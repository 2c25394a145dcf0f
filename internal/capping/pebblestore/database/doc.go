// Package database is the Pebble database of the embedded store. It opens and identifies the database, keeps its
// format marker and keys, makes writes durable, reads around damage, and takes the store out of service. It knows
// which value belongs to which user or pacer, but not the meaning of values; the store's doc.go has the data layout.
//
//	Open ─► probe ─► notes.Check ─► pebble.Open ─► format marker ─► identity ─► upgrade begun
//	call ─► DB.Write ─► Commit … Commit ─► Sync             out of service: an error, at once
//	     └► DB.Read  ─► Reader.Value ─► survey of a damaged block
//	Pebble ──► disk ──► file system      a refused write freezes all files, like a power cut
//	            └─────► FILES            the list of write-ahead logs and manifests that must exist
//
// # Lost and replaced stores
//
// Pebble creates a missing database, and silently opens a database without its write-ahead log. Both would allow
// every send again. Three checks prevent this:
//
//   - The file PATH.id beside the directory holds the store's id and its mark. The mark increases at each start and
//     close, once a minute of use, and when writes stop. It changes in the database first. Open refuses an emptied
//     or replaced directory, an older copy, and a database that has lost its end. When the parent directory is on
//     the same volume, only Config.MustExist helps.
//   - The file FILES in the directory lists the write-ahead logs and manifests. Open returns an error when a listed
//     file is missing. Open ignores a list without the current manifest, which an older version of capper left.
//   - An open store checks each second that these files still exist, and goes out of service otherwise.
//
// Each error names the file to remove for an operator who wants to continue anyway.
//
// # Damaged blocks
//
// Each read of a damaged block takes Pebble tens of milliseconds. So the first such read starts a survey, which
// walks to the damage from both sides. The users in between are then unavailable without further reads. A later
// write of such a user is marked as mended and found above the block. A damaged filter costs only time, because
// logs are then read without filters.
//
// # A full or broken disk
//
// A refused write takes the store out of service and freezes its files. Pebble sees only successful writes from then
// on, because it panics otherwise, and each call checks after its sync whether the store is still in service. Every
// send that was answered before is in the database after the next start.
//
// A table that cannot be written is no outage, because the write-ahead log has its content. Pebble retries once a
// second, and the store is "degraded" until the disk has space. A panic in a call or a fatal error of Pebble takes
// the store out of service and stops all calls to Pebble. A panic in Pebble's own goroutines ends the process.
//
// Open first writes and removes 4 MiB, so that a full disk gives a clear error. Open ends with the first refused
// write or with its context, and removes partial tables. Close has a timeout.
//
// # Time
//
// There is one clock, the process's. A clock that is set back makes decisions stricter and never breaks the order of
// a log. A clock far ahead would block users and expire logs. So the store is down while the clock is more than a day
// ahead of the file system's time at the start plus the time since. Open also compares the clock with the last mark:
// more than a day behind it or 400 days ahead is an error.
//
// # Archives
//
// A backup is a tar file, written in one pass, that ends with its own checksum:
//
//	files of the database at one instant
//	FILES           the write-ahead logs and manifests among them, which Open requires
//	marker.…        the marker file; a directory without it is no database
//	manifest.json   store, time and program; size and SHA-256 of each file
//	SHA256          the checksum of all bytes before
//
// Verify compares every byte, so that a truncated or changed archive is found. Extract writes the marker file last,
// so that a start after an interrupted restore reports the missing files.
package database
