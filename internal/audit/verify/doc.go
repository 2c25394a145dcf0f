// Package verify checks the files of an audit location, and compares the recorded sends with the limits that were in
// force.
//
// # Files
//
// Every object of an audit location must belong to an audit, and every audit file and document must be complete. Verify
// computes the index entry of each audit file from the file's bytes, and compares the computed entry with the stored
// entry. The numbers of an instance's audit files must have no gaps. The sequence numbers of an instance's records must
// also have no gaps. Verify reports a missing file, and a loss of records that an instance has recorded.
//
// # Sends
//
// To check limits, a simple model replays the sends of each user: the sends that capper allowed and that no call
// released. If a limit in force certainly forbade a recorded send, verify reports the send. The audit contains the
// beginning and the end of each call, and not the exact times of the sends. The model therefore reports a send only if
// the limit forbade the send at every possible time. If the order of two calls is unknown, the model reports a send
// only if the limit forbade the send for either order. The clocks of two instances may differ by up to Record.Widening.
// The model reports a send only if the limit forbade the send for every possible difference of the clocks.
//
// Verify does not report uncertain cases:
//
//   - a release may have removed the send; even the record of this release may be lost, because an instance died;
//   - the retention may have removed the send from the log;
//   - the segment of the user is unknown.
//
// If a call ignored the limits (Exempt), the sends of the call count towards the limits of later sends, but verify does
// not report them.
//
// # The store
//
// If Config.Store is set, verify asks the store for every send that the store must hold. The store must hold a send if
// no call released the send, and nobody erased the user later. Verify expects a send in the store only while the send
// is younger than each window that was in force since the send. The store may lack a send if newer sends have displaced
// it from a full log of the user. If the store lacks a send that it must hold, verify waits for Store.Settle, and reads
// the audit again. If the store must still hold the send according to the audit, verify reports the send as missing
// (store.go). If an instance is killed, the record of a release may be lost. If a lost record of a release may be the
// reason for a missing send, verify does not report the send (doubt.go).
//
// # Cost
//
// Verify reads the audit records once to check and count them, and then once for each pass (a check of some of the
// users). Each pass of verify covers some blocks of 65,536 neighbouring ids, with at most Config.Events events (effects
// of a call on a user). An event takes 12 bytes. If ids are not dense 32-bit numbers, a block consists of the id images
// (64-bit hashes) with the same upper 16 bits. An event then takes 24 bytes. Each pass of verify sorts the events of
// its blocks by user and judges the users on all cores. In addition to the events, verify keeps 48 bytes in memory for
// each audit record.
package verify
