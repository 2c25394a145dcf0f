// Package pacerlogs keeps the logs of pacers, and the requests that took permits of
// them, in the embedded database.
//
//	TakePermits(ask)
//	   │  lock; the clock's time                            database.DB.Time
//	   │  the logs of the targets: from memory, else loaded entry.go, cache.go
//	   │  the request: is it remembered?                    request.go
//	   │  Place, in memory                                  package pacing
//	   │  what is new in the logs, and the request: one
//	   │  batch, committed without a sync                   logs.go
//	   ▼  unlock
//	one sync, which calls that end together share           database.DB.Sync
//	   ▼
//	grant
//
// One lock is over all pacers: a step takes 4 µs where the logs are in memory, and no
// call holds it while the disk syncs (BenchmarkTake). With 8 callers at once, two processors gave 20,000
// calls a second at 40 µs of processor time each, most of it the sync's, of 1 permit or of 100:
// 1.6 million permits a second (BenchmarkPermits).
//
// # Guarantees
//
//   - A grant is answered after the sync that covers it, also that of a request that was
//     granted before. What a crash takes away was never answered. A look syncs nothing.
//   - An ask is recorded in all of its logs, with its request, or not at all.
//   - When the disk refuses a write the store is out of service, for pacers as for
//     users: every call is an error until it is opened again.
//   - A log that cannot be read, or that is not as it was written, is an error of each ask for
//     it, and of no other one; it is never taken for an empty log. The status is degraded
//     and tells of it. Forgetting its pacer makes the log new.
//   - A request that cannot be read is an error of that request.
//
// # Data layout
//
//	00 "pacer " name                               the pacer's life (4); none: 0
//	05 request (16)                                version (1), instant from which on it is forgotten (8), grant as
//	                                               package pacing writes it
//	06 life (4) name message                       the log's head: version (1), instant until which it is kept (8),
//	                                               Total (8), number of runs (4)
//	06 life (4) name message number (6)            a run, as package pacing writes it; the number is that of its
//	                                               first permit
//
// A name and a message have their length (1) before them; instants are
// microseconds. A call writes the head, the run that it made longer, and those that
// it began, about 100 bytes; a log that is merged is written anew, all of it, once in
// at least 700 runs. So a log of 3,000 runs, 63 kB, costs a call no more than one of 3.
//
// The head counts the runs and the permits, and a run says its number twice, so that
// a missing or a mixed-up value is seen.
//
// A pacer's first logs lie in life 0. Forgetting removes them, and begins a life of a higher
// number than all others, whose logs lie behind all that there were: so a new log is
// read and written without touching the blocks of a table in which the old one was,
// which may be damaged. Nothing but these logs may lie behind 06.
//
// # Time
//
// There is one clock, the process's, to the microsecond, with the guard of package
// database. A clock that is set back makes callers wait: a slot is never before the
// newest one. Windows are counted by it: one that is set forward makes those under way
// shorter by as much.
//
// # What is removed, and when
//
// Logs in memory are bounded by 32 MiB; those not used for the longest time go first. In
// the database a log is kept until its newest slot is past by the longest window of
// any limits that it was judged by, and a day at least; a request until the longest wait
// that it could have been granted is past, and a minute. A sweep removes them, those
// of pacers that are not configured any more, too. It does not get behind a damaged
// block but to the logs of the next life.
package pacerlogs
