// Package verify holds a location of the audit to what it says of itself, and the recorded
// sends to the limits that were in force.
//
// # Files
//
// Every object of the location must be one that an audit has, every file and document whole.
// The entry of each file is worked out again from its bytes and must be the very one of the
// index. Files of an instance follow each other by number and sequence; what is missing in
// between is a finding, and so are losses that an instance noted itself.
//
// # Sends
//
// A naive model goes through the sends of each user: those that were allowed, less those that
// were given back. A finding is a send that a limit of its policy forbade for certain:
// whatever the instants within the spans of the calls were, whichever of two calls at the
// same time was first, and however far the clocks of instances may have been apart
// (Record.Widening). What is not certain counts in nobody's disfavour: sends that a release
// may have taken, also one of those that an instance may not have written before it died or
// noted as lost, that a retention may have forgotten, or whose segment is not known. Sends
// to which limits did not apply (Exempt) count and are never findings themselves.
//
// # The store
//
// With Config.Store the store is asked for every send that it must hold: recorded, not given back, of a user who
// was not erased since, younger than each window that was in force since, and not displaced from a full log. A
// send that the store lacks is missing when the audit, read again after Store.Settle, still says that it must be
// there (store.go). An instance that is killed may lose the record of a release: doubt.go sorts those sends out.
//
// # Cost
//
// Records are read once to check and count, then as often as the sends of all users need
// passes: a pass takes those of as many blocks of 65,536 neighbouring ids as have Config.Events
// events together, 12 bytes each, sorts each block by user and judges it, on all cores. Of each
// record 48 bytes more are in memory.
package verify
