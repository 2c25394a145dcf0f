// Package lookup follows the segments and sets that data teams publish, as the service
// capper does, and answers in the process itself: which segment is a user in, is the
// user in a set, and who is in an audience by expression.
//
//	follower, err := wire.Follow(ctx, wire.Config{Source: "s3://segments/prod", CacheDir: "/var/cache/segments"})
//	…
//	defer follower.Close()
//	now := follower.Current()
//	segment := now.Segment(42)
//	out, err := now.Contains("opted-out", 42)
//
// # Vocabulary
//
// A segment is a named set of users; a user is in one at most. A set is a named set of
// users too, and may overlap with others. A generation is one published version of all of
// them. An audience is the users of an expression such as active - vip - country/my.
// Users are unsigned 32-bit integers.
//
// # Guarantees
//
// A Generation never changes: answers that belong together are taken from one, which
// Current returns. Follow and the refresh in the background believe no byte of the source:
// what is damaged, half there, or lacks a set of Config.Require, or which too many users of
// such a set left (Config.MayLose), is not used, the last good
// generation stays, and Status says why. With a cache directory, which processes may
// share, Follow also succeeds while the source is away.
//
// A look-up takes no lock and no memory, and 4 to 30 ns where what it reads is in the
// processor's caches; docs/lookup.md has figures. Everything is safe for concurrent use.
//
// # Not here
//
// Whether a user may be sent to: that is for the service, which knows the limits and what
// has been sent. Package client asks it.
package lookup
