// Package imports is `capper import`: it reads files of sends that were made elsewhere, sorts them by namespace and
// time, and has a running service record them.
//
// Everything is read before anything is sent, so that a file with faults changes nothing. Rows are
// sorted a million at a time, in memory; where there are more, each such run goes to a file of a temporary
// directory and they are merged while they are sent. A send takes about 30 bytes there and its message id.
//
// A call holds rows of one namespace. The oldest of each are sent first, a few batches at one time, but those of a user
// one after the other: of sends that are the same the service records the one that it sees first. The service knows a
// send again, so a batch that was not answered is sent as it was, and a whole import that was broken off is begun anew.
//
// # Probe
//
// Package probe asks the service of this machine how it does, for what restarts it: the
// health check of an image in which there is no other program that could.
//
// # Storage
//
// Package storage is the commands over whole stores: backup, restore and migrate.
//
// # Migration
//
// Package migration brings what an embedded store has recorded into another store, while the embedded one
// decides: by copies of it, one pass after the other, until a last pass over the store itself, which
// nobody writes to any more.
//
//	Pass(copy of now, copies of earlier passes)
//	   │  walk over all of them, user by user          walk.go
//	   │  equal in now and in the last finished pass: it is there already
//	   ▼
//	merge the logs of a few thousand users             pass.go
//	   ▼
//	read them back, each: is the log there the log here? Else erase it and merge it anew
//
// Nobody decides on the target before the last pass, so that a log there may be replaced: that is how
// releases and erasures between passes arrive. A send there that no copy ever had is somebody else's, and
// ends the pass before anything of it is lost. A pass that was not finished may have written what the
// next copy no longer has, so its copy is walked over too, and then every user is read back.
//
// Sends that no window sees any more are not brought over, nor are the counts of messages and
// the logs of pacers.
package ops
