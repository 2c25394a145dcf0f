// Package blast is what becomes of an audience that is asked for: whom there is still to ask, the results of
// its batches, gathered, and the files that they are written to.
//
// # Lines
//
// Package lines copies lines at a pace: each is written, whole, when its permit has
// been had, and those whose permits are there are written together. How many went
// through is known at any time, also while a write or a read hangs.
//
// # Paced
//
// Package paced has the commands about pacers: one copies lines at their pace, the
// other tells what they have given out.
//
// # Remote
//
// Package remote is how commands reach a running service, how they say which of
// its users they are about, and what they say of its refusals.
package cli
