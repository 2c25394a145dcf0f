// Package verify checks the files of an audit location, and compares the recorded sends with the limits that were in
// force.
//
// # Files
//
// Every object of an audit location must belong to an audit, and every audit file and document must be complete.
// Verify computes the index entry of each audit file from the file's bytes, and compares the computed entry with the
// stored entry. The numbers of an instance's audit files must have no gaps, and neither may the sequence numbers of
// its records. A missing file is a finding. If an instance itself recorded that it lost records, this loss is also a
// finding.
//
// # Sends
//
// To check limits, a simple model replays the sends of each user: the sends that capper allowed and that no call
// released. If a limit in force certainly forbade a recorded send, the send is a finding. The audit does not contain
// the exact time of a send: it only says when the call began and ended. Because the exact times of sends are unknown,
// the model reports a send only if the limit forbade the send at every possible time. For two calls at the same time,
// the model reports a send only if the limit forbade the send for either order of the calls. The limit must have
// forbidden the send whatever difference the clocks of the instances had, within Record.Widening.
//
// Uncertain cases are no findings:
//
//   - a release may have removed the send, even a release whose record was lost when its instance died;
//   - the retention may have removed the send from the log;
//   - the segment of the user is unknown.
//
// If a call ignored the limits (Exempt), its sends count towards the limits of later sends, but are no findings
// themselves.
//
// # The store
//
// If Config.Store is set, verify asks the store for every send that the store must hold. The store must hold a send if
// the send was not released, and its user was not erased later. Verify expects a send in the store only while the send
// is younger than each window that was in force since the send. The store may lack a send if newer sends have displaced
// it from a full log of the user. If the store lacks a send that it must hold, verify waits for Store.Settle and reads
// the audit again. verify reports the send as missing if, after the second reading, the audit still says that the store
// must hold the send (store.go). If an instance is killed, the record of a release may be lost. If a lost record of
// this kind may be the reason why a send is missing, the code in doubt.go does not report the send.
//
// # Cost
//
// Verify reads the audit records once to check and count them, and then once for each pass (each pass checks a part
// of the users). A pass covers some blocks of 65,536 neighbouring ids, with at most Config.Events events (effects of
// a call on a user) of 12 bytes. If ids are not dense 32-bit numbers, a pass covers blocks of id images (64-bit
// hashes) with the same upper 16 bits, and an event takes 24 bytes. Each pass of verify sorts the events of its
// blocks by user and judges the users on all cores. In addition to the events, verify keeps 48 bytes in memory for
// each audit record.
package verify
