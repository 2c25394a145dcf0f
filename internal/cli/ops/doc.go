// Package ops implements the commands of capper that operators run: import, backup, restore, migrate, doctor, size
// and healthcheck.
//
// # Import
//
// The command `capper import` reads files of sends that were made elsewhere, sorts them by namespace and time, and
// has a running service record them. The command reads all files before it sends the first row, so a file with faults
// changes nothing. It sorts a million rows at a time in memory. Further rows go to sorted runs in a temporary
// directory, which are merged during the import. A send takes about 30 bytes there, plus its message id.
//
// A call holds rows of one namespace, oldest first. Several batches are sent in parallel, but the batches of one user
// follow each other, because the service keeps the first of equal sends. The service recognizes a repeated send. An
// unanswered batch is therefore sent again unchanged, and an interrupted import is started again from the beginning.
//
// # Health check
//
// The command `capper healthcheck` asks the service of this machine for its health. A container image without other
// programs needs it, because the container runtime restarts the service by its result.
//
// # Migration
//
// The command `capper migrate` copies the records of an embedded store to Redis while the embedded store still
// decides. It works in passes over copies of the store. The last pass reads the store itself, which no service writes
// to any longer.
//
//	Pass(copy of now, copies of earlier passes)
//	   │  walk over all of them, user by user          walk.go
//	   │  equal in now and in the last finished pass: already in the target
//	   ▼
//	merge the logs of a few thousand users             pass.go
//	   ▼
//	read them back and compare; if they differ, erase the user's log and merge it again
//
// No service decides on the target before the last pass, so a pass may replace a log there. Releases and erasures
// between two passes arrive in this way. A send in the target that no copy ever had comes from another writer, and
// the pass stops before it removes anything. An unfinished pass may have written sends that the next copy no longer
// has. The next pass therefore walks over that copy too, and then reads back every user.
//
// A migration leaves out sends older than every window, the counts of messages and the logs of pacers.
package ops
