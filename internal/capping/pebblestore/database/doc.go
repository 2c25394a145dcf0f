// Package database is the Pebble database of the embedded store. Package database opens and identifies the database,
// and handles its format marker and keys. Package database also makes writes durable, reads around damage, and takes
// the store out of service. Package database knows which value belongs to which user or pacer, but not what values
// mean. The doc.go of pebblestore has the data layout.
//
//	Open ─► probe ─► notes.Check ─► pebble.Open ─► format marker ─► identity ─► upgrade begun
//	call ─► DB.Write ─► Commit … Commit ─► Sync             out of service: an error, at once
//	     └► DB.Read  ─► Reader.Value ─► survey of a damaged block
//	Pebble ──► disk ──► file system      a refused write freezes all files, like a power cut
//	            └─────► FILES            the list of write-ahead logs and manifests that must exist
//
// # Lost and replaced stores
//
// Pebble creates a missing database, and opens a database whose write-ahead log is missing without an error. In both
// cases, every send would be allowed again. Three checks prevent this:
//
//   - The file PATH.id beside the directory holds the store's id and its mark, a number. The mark increases at each
//     start and close, once a minute of use, and when writes stop. Each new mark is written to the database first, and
//     then to the file. Open therefore returns an error for an emptied or replaced directory, for an older copy, and
//     for a database that has lost its newest writes. If the parent directory is on the same volume and is lost too,
//     only Config.MustExist helps.
//   - The file FILES in the directory lists the write-ahead logs and manifests. If a listed file is missing, Open
//     returns an error. Open ignores a list that lacks the current manifest, because an older version of capper has
//     left the list.
//   - An open store checks each second that these files still exist. If a listed file is missing while the store is
//     open, the store goes out of service.
//
// Each error names the file that an operator removes to continue anyway.
//
// # Damaged blocks
//
// Each read of a damaged block takes Pebble tens of milliseconds. The first such read therefore starts a survey, which
// reads from both sides up to the damage. The users between the two ends are then unavailable without further reads. If
// the log of such a user is written again, the user is marked as mended, and Pebble finds the log without the damaged
// block. A damaged Bloom filter costs only time, because logs are then read without filters.
//
// # A full or broken disk
//
// If the disk refuses a write, the store goes out of service and freezes its files. From then on, Pebble sees only
// successful writes, because it would panic otherwise. Each call checks after its sync whether the store is still in
// service. After the next start, the database has every send that was answered before.
//
// A table that cannot be written is no outage, because the write-ahead log has the same content. Pebble retries the
// table once a second, and the store is "degraded" until the disk has space. A panic in a call, or a fatal error of
// Pebble, takes the store out of service and stops all calls to Pebble. A panic in Pebble's own goroutines ends the
// process.
//
// Open first writes and removes 4 MiB, so that a full disk leads to a clear error. Open ends at the first refused write
// or when its context ends, and removes unfinished tables. Close has a time limit.
//
// # Time
//
// The store uses one clock, the clock of the process. If the clock is set back, decisions become stricter, and logs
// stay in time order. A clock that is far ahead would block users and expire logs. The store is therefore down while
// the clock is more than a day ahead of the file system's time at the start, plus the time since then. Open also
// compares the clock with the last mark. Open returns an error if the clock is more than a day behind the last mark, or
// 400 days ahead.
//
// # Archives
//
// A backup is a tar file that ends with its own checksum and is written in one pass:
//
//	files of the database at one instant
//	FILES           the names of its write-ahead logs and manifests, which Open requires
//	marker.…        the marker file; a directory without it is no database
//	manifest.json   store, time and program; size and SHA-256 of each file
//	SHA256          the checksum of all bytes before
//
// Verify compares every byte, so that it detects a truncated or changed archive. Extract writes the marker file last,
// so that a start after an interrupted restore reports the missing files.
package database
