// Package archive reads an audit location: the records of all instances in the order of time, the policies that decided
// the calls, and the erased users. The package also compacts a location, and exports records.
//
//	List open/ and index/ → files that may match → read and checked, a few in advance
//	→ each in the order of At → merged
//
// # Checks
//
// The archive (the reader of an audit location) checks every byte of an audit file. A rolled (complete) audit file must
// have the SHA-256 in the file's index entry. Every record in an audit file must match the record's checksum, and every
// bitmap must be sorted. Index entries, erasures and policies have checksums of their own. If an audit file fails a
// check, the archive returns a *FileError in place of the file's records. The archive reads an open audit file up to
// the last complete record, because the writer may still be writing after this record.
//
// # Concurrent writers
//
// The archive lists the open audit files first, and the index of the complete files second. If a writer completes an
// audit file after the archive has listed the open files, the archive finds the file in the index. If the audit file of
// an index entry does not exist, the archive reads the index entry again.
//
// # Memory
//
// The archive keeps some audit files in memory: the files with records around the instant that the reader has reached,
// and a few later files. If instances begin a new audit file every ten minutes, the archive keeps two audit files of
// each instance in memory. In addition, the archive keeps 8 bytes in memory for each record of the files in memory.
//
// # Compaction
//
// A compaction removes erased users from complete audit files, and removes audit files that are older than the
// configured age.
//
// A compaction rewrites an audit file in three steps. The audit location is consistent after each step. A compaction
// first writes the new file under the hash of the file's content, then replaces the index entry, and then removes the
// old file. To remove an audit file that is too old, a compaction removes the file's index entry first. A reader that
// does not find an audit file reads the file's index entry again. If a compaction stops between two steps, it leaves an
// audit file that no index entry names. The next compaction removes an audit file without an index entry if the file is
// at least an hour old. Because a compaction keeps newer files, two simultaneous compactions do not remove each other's
// files.
//
// Before a compaction removes audit files of an instance, it stores the numbers of these files (audit.Dropped). With
// the numbers of the removed files, `capper audit verify` can distinguish removed files from lost files. A compaction
// changes neither the sequence numbers of audit records nor the numbers of audit files. A compaction removes the audit
// files of an instance in the order of their numbers. A compaction does not change open audit files and files in a
// spool directory.
package archive
