// Package storetest is the acceptance suite of capping.Store: what every store
// must do, whatever it keeps its logs in.
//
// Run drives a store with a clock that only moves when a case moves it. The
// cases share nothing: each takes users and message ids of its own, so a store
// whose keyspace outlives a case needs no flushing in between. The exceptions
// are the users 0 and 4294967295, which are erased before use.
//
// The oracle of the random histories is a naive model: a plain slice of sends
// per user, counted anew for every question. It shares no code with
// capping.Judge.
package storetest
