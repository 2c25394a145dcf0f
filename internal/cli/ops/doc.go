// Package ops implements the commands of capper that operators run: import, backup, restore, migrate, doctor, size and
// healthcheck.
//
// # Import
//
// The command `capper import` reads files of sends that another program made. The command sorts the sends by namespace
// and time, and imports them into a running service. The command reads all files before it sends the first row, so a
// file with errors changes nothing. The command sorts a million rows at a time in memory. If there are more rows, the
// command writes sorted runs to a temporary directory, and merges them during the import. In the temporary directory, a
// send takes about 30 bytes plus its message id.
//
// A call contains rows of one namespace, in ascending order of time. The command sends several batches in parallel. The
// command sends the batches of one user one after another, because the service keeps the first of equal sends. The
// service recognizes a repeated send. Because of that, the command sends a batch without a response again, unchanged. A
// user can run an interrupted import again from the beginning.
//
// # Health check
//
// The command `capper healthcheck` requests the health of the service on the same machine. The command exists for a
// container image without other programs, because the container runtime uses its exit status to decide on a restart.
//
// # Migration
//
// The command `capper migrate` copies the records of an embedded store to Redis while the service still uses the
// embedded store. The command works in passes, each with a new copy of the embedded store. The last pass reads the
// embedded store itself, after the service has stopped.
//
//	Pass(copy of now, copies of earlier passes)
//	   │  walk over all of them, user by user          walk.go
//	   │  equal in now and in the last finished pass: already in the target
//	   ▼
//	merge the logs of a few thousand users             pass.go
//	   ▼
//	read them back and compare; if they differ, erase the user's log and merge it again
//
// Before the last pass, no service uses the Redis store, so a pass may replace the log of a user in Redis. Releases and
// erasures between two passes get to Redis when a pass replaces logs. If Redis contains a send that no copy ever
// contained, another program has written the send. The pass then stops before it removes anything. After an unfinished
// pass, the next pass also reads the copy of the unfinished pass, and reads back the log of every user, because Redis
// may contain sends that the next copy no longer contains.
//
// A migration does not copy sends that are older than every window, counts of messages, and logs of pacers.
package ops
