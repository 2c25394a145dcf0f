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
package lookup
