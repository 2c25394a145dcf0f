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
package compact
