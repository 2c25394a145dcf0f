// Package migration brings what an embedded store has recorded into another store, while the embedded one
// decides: by copies of it, one pass after the other, until a last pass over the store itself, which
// nobody writes to any more.
//
//	Pass(copy of now, copies of earlier passes)
//	   │  walk over all of them, user by user          walk.go
//	   │  equal in now and in the last finished pass: it is there already
//	   ▼
//	merge the logs of a few thousand users             pass.go
//	   ▼
//	read them back, each: is the log there the log here? Else erase it and merge it anew
//
// Nobody decides on the target before the last pass, so that a log there may be replaced: that is how
// releases and erasures between passes arrive. A send there that no copy ever had is somebody else's, and
// ends the pass before anything of it is lost. A pass that was not finished may have written what the
// next copy no longer has, so its copy is walked over too, and then every user is read back.
//
// Sends that no window sees any more are not brought over, nor are the counts of messages and
// the logs of pacers.
package migration
