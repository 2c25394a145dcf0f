// Package archive reads an audit location: the records of all instances in the order of time, the policies that
// decided them, and the erased users. The package also compacts a location and exports its records.
//
//	List open/ and index/ → files that may match → read and checked, a few in advance
//	→ each in the order of At → merged
//
// # Checks
//
// The archive trusts no byte. The bytes of a rolled file must have the SHA-256 that the index holds. Every frame must
// match its checksum, and every bitmap must be sorted. Entries, erasures and policies have checksums of their own. A
// file that fails is a FileError, and the archive returns none of its records. An open file is read up to its last
// whole frame, because the writer is still writing after it.
//
// # Concurrent writers
//
// The archive finds a file that is rolled or rewritten during the read at its new place. The archive lists open files
// before the index, and it reads an index entry again if the entry's file is gone.
//
// # Memory
//
// Memory holds the files that cover the current instant, and a few in advance. With a roll of ten minutes these are
// two files for each instance. Each record except the first of a file takes 8 bytes more.
//
// # Compaction
//
// A compaction removes erased users from rolled files, and removes files that are older than the configured age.
//
// A file is rewritten in three steps, and the location is consistent after each one. The compaction writes the new
// file under the hash of its content, replaces the index entry, and removes the old file. A file that is too old
// loses its index entry first. A reader that does not find a file reads its index entry again. A compaction that
// stops between two steps leaves a file that no index entry names. The next compaction removes the file once it is an
// hour old, so that two compactions at the same time do not remove each other's files.
//
// Before a compaction removes files of an instance, it records their numbers (audit.Dropped). A verification then
// distinguishes removed files from lost files. Sequences and file numbers do not change. The files of an instance are
// removed in the order of their numbers. Open files and files in a spool are not touched.
package archive
