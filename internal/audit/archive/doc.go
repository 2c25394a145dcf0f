// Package archive reads an audit location. Package archive returns the records of all instances in the order of time,
// the policies that decided the calls, and the erased users. Package archive also compacts a location and exports its
// records.
//
//	List open/ and index/ → files that may match → read and checked, a few in advance
//	→ each in the order of At → merged
//
// # Checks
//
// When the archive (the reader of an audit location) reads an audit file, it checks every byte. A rolled (complete)
// audit file must have the SHA-256 that the file's index entry contains. Every record in an audit file must match its
// checksum, and every bitmap must be sorted. Index entries, erasures and policies have checksums of their own. If an
// audit file fails a check, the archive returns a *FileError in place of the records of the file. The archive reads
// an open audit file up to its last complete record, because the writer may still be writing after this record.
//
// # Concurrent writers
//
// The archive lists the open audit files before the index of the complete files. If an audit file is completed after
// the archive has listed the open files, the index still leads the archive to the file. If the audit file of an index
// entry does not exist, the archive reads the index entry again.
//
// # Memory
//
// The archive keeps in memory the audit files that cover the instant that the reader has reached, and a few files in
// advance. If instances begin a new audit file every ten minutes, the archive keeps two audit files of each instance
// in memory. In addition to the files, the archive keeps 8 bytes in memory for each record except the first record of
// a file.
//
// # Compaction
//
// A compaction removes erased users from complete audit files, and removes audit files that are older than the
// configured age.
//
// A compaction rewrites an audit file in three steps, and the audit location is consistent after each step. To
// rewrite an audit file, a compaction writes the new file under the hash of its content, replaces the index entry,
// and removes the old file. To remove an audit file that is too old, a compaction removes the file's index entry
// first. A reader that does not find an audit file reads the file's index entry again. If a compaction stops between
// two steps, it leaves an audit file that no index entry names. The next compaction removes an audit file without an
// index entry if the file is at least an hour old. Because a compaction keeps newer files, two simultaneous
// compactions do not remove each other's files.
//
// Before a compaction removes audit files of an instance, it records the numbers of these files (audit.Dropped).
// `capper audit verify` then distinguishes removed files from lost files. A compaction changes neither the sequence
// numbers of audit records nor the numbers of audit files. A compaction removes the audit files of an instance in the
// order of their numbers. A compaction does not change open audit files and files in a spool directory.
package archive
