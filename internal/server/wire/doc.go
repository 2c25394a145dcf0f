// Package answer writes the answers of filter, release, look-up and permits calls: decisions
// are counted in one pass and the answer is appended to a buffer, without a value
// per user or permit. Bitmaps are written container by container from the ascending
// users, runs of permits as waits from now.
//
// # Decode
//
// Package decode reads the bodies of requests strictly, in one pass.
//
// It is written by hand because the usual decoders let through what this API
// refuses (unknown and repeated fields, other cases of names, null ids, data
// after the object) and cost ten times as much per id. Ids go straight into the
// slice that the store gets; that slice is not pooled, since a store may still
// read it when a call has timed out.
//
// A bitmap is checked byte by byte before one id is expanded, in time linear in
// its size; the library's own check takes quadratic time on a container of many
// runs.
//
// # Lookup
//
// Package lookup answers what a generation holds: its names, who is in a segment or
// set, what users are in, and the users of an audience.
//
// Everything in one answer is of one generation: the one in use, or an earlier one that is
// kept because somebody pinned it. Pages of members and audiences pin theirs, so that what
// follows can be asked of it.
//
// Working an audience out takes all cores for a while. How many are worked out at a time
// is bounded, and who waits gets a turn in rotation between the holders, so that one who
// asks for many does not keep others waiting. A call's deadline ends it.
package wire
