// Package database wraps the Pebble database of the embedded store. Package database opens and identifies the Pebble
// database, and handles its format marker and keys. Package database also makes writes durable, skips damaged blocks
// when it reads, and takes the store out of service after a fault. Package database knows the user or pacer of each
// stored value, but not the meaning of the values. The comment in doc.go of package pebblestore describes the data
// layout.
//
//	Open ─► probe ─► notes.Check ─► pebble.Open ─► format marker ─► identity ─► upgrade begun
//	call ─► DB.Write ─► Commit … Commit ─► Sync             out of service: an error, at once
//	     └► DB.Read  ─► Reader.Value ─► survey of a damaged block
//	Pebble ──► disk ──► file system      a refused write freezes all files, like a power cut
//	            └─────► FILES            the list of write-ahead logs and manifests that must exist
//
// # Lost and replaced stores
//
// If a database is missing, Pebble creates a new one. If a write-ahead log is missing, Pebble opens the database
// without an error. After the loss of a database or of a write-ahead log, the store would allow recorded sends again.
// Three checks detect that the store was lost or replaced:
//
//   - The file PATH.id beside the directory holds the store's id and its identity mark (a growing number that exposes
//     an old copy). The identity mark increases at each start and close, once in each minute of use, and when writes
//     stop. The store writes each new identity mark first to the database, and then to the file PATH.id. The function
//     Open compares the mark in the database with the mark in the file PATH.id. If the directory was emptied or
//     replaced, is an older copy, or has lost its newest writes, Open returns an error. If the parent directory is on
//     the same volume and is lost too, only the setting Config.MustExist prevents a new, empty store.
//   - The file FILES in the directory lists the write-ahead logs and manifests. If a file in the list FILES is missing,
//     Open returns an error. If the list lacks the current manifest, Open ignores the list, because an older version of
//     capper has used the store without updating it.
//   - An open store checks each second that the files in the list FILES still exist. If a file is missing while the
//     store is open, the store goes out of service.
//
// Each error of a check for missing files names the file that an operator removes to continue anyway.
//
// # Damaged blocks
//
// Each read of a damaged block takes Pebble tens of milliseconds. When a read has found a damaged block, a survey
// therefore reads towards the block from both sides, to find its first and its last user. The store treats all users
// from the first to the last user of a damaged block as unavailable, and does not read the block again. If the log of
// an unavailable user is written again, the store records that the user's new log is readable. Pebble finds this new
// log without a read of the damaged block. A damaged Bloom filter costs only time, because the store continues to read
// logs without filters.
//
// # A full or broken disk
//
// If the disk refuses a write, the store goes out of service and freezes its files: nothing in them changes any more.
// After the freeze, every write of Pebble seems to succeed, because a refused write would make Pebble panic. Each call
// checks after its sync that the store is still in service, because a sync on a frozen disk only seems to succeed.
// After the next start, the database has every send for which the store returned a verdict before the fault.
//
// If a table cannot be written, the store stays in service, because the write-ahead log has the same content. Pebble
// retries the write of a refused table once a second. While tables cannot be written, for example on a full disk, the
// state of the store is "degraded". A panic in a call, or a fatal error of Pebble, takes the store out of service and
// stops all calls to Pebble. A panic in Pebble's own goroutines ends the process.
//
// The function Open first writes a file of 4 MiB and removes it, so that a full disk leads to a clear error. The
// function Open returns an error at the first refused write or when its context ends. After an error, Open removes the
// tables that Pebble has not finished. The method Close has a time limit.
//
// # Time
//
// The store takes all times from one clock, the clock of the process. If this clock is set back, decisions only become
// stricter, and users' logs stay in time order. If the clock were far ahead, the store would block users and expire
// logs. The store is therefore "down" while the clock is more than a day ahead of the comparison time. The comparison
// time is the file system's time when the store started, plus the time that has passed since the start. The function
// Open also compares the clock with the time at which the last identity mark was written. If the clock is more than a
// day behind or 400 days ahead of the time of the last identity mark, Open returns an error.
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
// Verify compares every byte of the backup, so that it detects a truncated or changed archive. Extract writes the
// marker file last, so that a start after an interrupted restore reports the missing files.
package database
