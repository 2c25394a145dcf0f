// Package lookup keeps the published segments and sets of users in the memory of the caller's process. Package lookup
// can look up the segment of a user, check whether a user is in a set, and select users by an expression.
//
//	follower, err := lookup.Follow(ctx, lookup.Config{Source: "s3://segments/prod", CacheDir: "/var/cache/segments"})
//	…
//	defer follower.Close()
//	now := follower.Current()
//	segment := now.Segment(42)
//	out, err := now.Contains("opted-out", 42)
//
// # Vocabulary
//
// A segment is a named group of users; each user is in at most one segment. A set is also a named group of users, but
// sets may overlap. A generation is one published version of all segments and sets. An audience is the group of users
// that an expression such as "active - vip - country/my" selects. Package lookup needs user ids that are unsigned
// 32-bit integers.
//
// # Guarantees
//
// A Generation never changes. The method Current returns the generation in use; a caller should use one Generation for
// all look-ups that belong together.
//
// Follow and the background refresh reject a generation that is damaged or incomplete, or that lacks a name in
// Config.Require. Follow and the background refresh also reject a generation in which a required set has lost more
// users than Config.MayLose allows. After rejecting a generation, lookup keeps the last good generation in use, and the
// method Status reports the reason. If a cache directory is configured, Follow also succeeds while the source is down.
// Several processes may share a cache directory.
//
// A look-up takes no lock, allocates no memory, and takes 4 to 30 ns if its data is in the processor's caches;
// docs/lookup.md lists measurements. All functions and types of package lookup are safe for concurrent use.
//
// # Not here
//
// Only the capper service decides whether a user may receive a message, because package lookup has no limits and no
// earlier sends. Package client calls the service.
package lookup
