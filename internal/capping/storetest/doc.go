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
//
// # Cappertest
//
// Package cappertest is the acceptance suite of the whole policy over a store: random
// policies (suppression, holdout, quiet hours, limits by calendars, by users' time zones
// and in the shadow), random sets that overlap, calls of every kind over weeks and
// forecasts into other seasons, each user's decision compared with a naive model.
//
// The model knows the rules that users are told and nothing of how they are kept. It has
// types of its own, walks over lists, asks what a clock on the wall shows, and finds what
// comes later by stepping minute by minute.
package storetest
