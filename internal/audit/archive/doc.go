// Package archive reads a location of the audit, whoever wrote it: the records of all
// instances in the order of time, the policies they were decided by, and who was erased.
//
//	List open/ and index/ → files that may hold what is asked for → fetched and checked, a few ahead
//	→ each in the order of At → merged
//
// # What is believed
//
// Nothing. The bytes of a rolled file must have the SHA-256 that the index says, every
// frame its checksum, every bitmap its order; entries, erasures and policies have a check
// of their own. A file that fails is a FileError, and none of its records is given. An open
// file is read up to its last whole frame: what is behind it is being written.
//
// # Beside writers
//
// A file that is rolled or rewritten while a location is read is found at its new place:
// open files are listed before the index, and an entry whose file is gone is read again.
//
// # Memory
//
// The files that hold one instant, and a few ahead: with a roll of ten minutes two files
// of each instance. Of each record behind others in its file 8 bytes more.
//
// # Compact
//
// Package compact takes out of rolled files who was erased, and takes away files that are
// older than they are to be kept.
//
// # Order
//
// A file is rewritten in three steps, after each of which the location is whole: the new file
// is put under the hash of its content, the entry of the index is replaced, the old file is
// removed. A file that is too old loses its entry first, then goes. Whoever reads meanwhile
// and finds a file gone asks its entry again. What a run leaves that was ended in between is
// a file that no entry names: the next run removes it, once it is an hour old, so that two
// runs at once do not take each other's.
//
// Before files of an instance are taken away, a note says so (audit.Dropped), so that whoever
// verifies the location tells them from files that were lost.
//
// Sequences and numbers stay as they were, so nothing looks missing. Of an instance files go
// in the order of their numbers. What is being written, or waits in a spool, is not touched.
package archive
