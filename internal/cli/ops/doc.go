// Package ops implements the commands of capper that operators run: import, backup, restore, migrate, doctor, size and
// healthcheck.
//
// # Import
//
// The command `capper import` reads files of sends that another program made. `capper import` sorts the sends by
// namespace and time, and imports them into a running service. `capper import` reads all files before it sends the
// first row. If a file has errors, the command imports nothing. `capper import` sorts a million rows at a time in
// memory. If the files have more rows, `capper import` writes each sorted million to a file in a temporary directory.
// During the import, `capper import` merges the temporary files. In the temporary directory, each send takes about 30
// bytes plus its message id.
//
// Each import call contains rows of one namespace, in ascending order of time. `capper import` sends several batches of
// rows in parallel. `capper import` sends batches with rows of the same user one after another, because the service
// keeps the first of equal sends. The service recognizes repeated sends, so `capper import` sends a batch of rows again
// if the batch got no response. After an interruption, an operator can run `capper import` again from the beginning.
//
// # Health check
//
// The command `capper healthcheck` requests the health of the service on the same machine. `capper healthcheck` is for
// container images that contain no other programs. The container runtime runs `capper healthcheck`, and decides by the
// exit status whether to restart the container.
//
// # Migration
//
// The command `capper migrate` copies the records of an embedded store to Redis while the service still uses the
// embedded store. A migration works in passes, each with a new copy of the embedded store. The last pass reads the
// embedded store and no copy, after the service has stopped.
//
//	Pass(copy of now, copies of earlier passes)
//	   │  walk over all of them, user by user          walk.go
//	   │  equal in now and in the last finished pass: already in the target
//	   ▼
//	merge the logs of a few thousand users             pass.go
//	   ▼
//	read them back and compare; if they differ, erase the user's log and merge it again
//
// Before the last pass of a migration, no service uses the Redis store, so a pass may replace the log of a user in
// Redis. If sends are released or erased between two passes, the next pass replaces the logs of these users in Redis.
// If Redis contains a send that no copy of the embedded store ever contained, another program has written this send. A
// migration pass that finds a send of another program stops before it removes anything. After an unfinished migration
// pass, Redis may contain sends that are missing in the next copy of the embedded store. After an unfinished pass, the
// next pass also reads the copy of the unfinished pass, and reads back the log of every user.
//
// A migration does not copy three things: sends that are older than every window, the decision counts of messages, and
// the logs of pacers.
package ops
