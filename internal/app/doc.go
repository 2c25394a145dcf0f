// Package app is the service that `capper serve` runs: it opens what the
// configuration names, connects the parts, and starts and stops them.
//
// Both go in steps (see Service.steps). Each has a name, which stands in the log
// and in errors, and a bound of time. They start in order; when one fails, those
// before it are undone. They stop in reverse:
//
//	load segments           –
//	open the store          close the store
//	announce the limits     –
//	begin the audit         end the audit
//	build the API           –
//	refresh segments        stop refreshing segments
//	watch the configuration stop watching the configuration
//	listen                  drain the calls
//	ask for calls           ask for no more calls
//
// A drain whose time is over ends the connections, and then waits until the
// calls have come back from the store, as they must when their own time is over.
// The store is closed only when everything that uses it has ended: where a step
// above it had to be given up the store stays open, the log says so, and the end
// of the process ends it. Closing it under a call could panic, or answer from
// files that somebody else has opened since.
package app
