// Package live keeps the changes that API calls make to sets of users between two builds of the sets. Package live does
// not depend on stores or HTTP calls.
//
// # Rules
//
// A live change is a change of a set by an API call, which applies at once: it adds a user, removes a user, or cancels
// a user's earlier changes. If a user has several live changes in a set, the change with the latest time wins. At equal
// times, an addition wins. Because the latest change always wins, an instance can apply live changes in any order and
// repeatedly, with the same result.
//
// Each set of a published generation has an as-of time: the build (offline job) that made the set included all live
// changes up to this time. If a live change (change by an API call) is later than the as-of time of the set, the change
// overrides the build. If a live change (change by an API call) is earlier than the as-of time of the set, the change
// has no effect, because the build is newer and already includes it. If a live change adds a user, it even overrides
// builds whose as-of time is up to one minute (Margin) later, because clocks may differ. Package live prefers to
// withhold a message wrongly over sending a message to a person who objected.
//
// When all generations in use contain a live change, the store removes the change, and stores up to which time it has
// removed changes (Lists.Freed). If a generation has an earlier as-of time, it lacks removed changes, so the service
// must not allow sends with this generation.
//
// # From a call to a decision
//
//	Store.Change     one record for each call, stored durably; then Lists.Apply
//	Lists            the latest change of each user: 10 bytes each, in blocks of 65,536 users
//	Lists.View       a set of a generation with the changes; immutable
//	View.Mark        the users of a batch who are members: one lookup in a bitmap, as without changes. View.Mark
//	                 looks up changes of the last second separately, until Lists.Merge puts them into the bitmap.
//
// If user ids are not dense 32-bit integers, package live identifies users by id images (64-bit hashes of ids). If user
// ids are not dense 32-bit integers, the bitmaps in package live contain small numbers of users instead of ids. If ids
// are not dense, the bitmap of a View (the members of a set) contains no ids, so the View looks up live changes
// separately (NewOfImages). A live change of a user with an id image takes 14 bytes in Lists, and 8 bytes in each View
// (the members of a set).
//
// A store that several instances share keeps a version for each of its partitions, and replaces this version with
// each live change. When an instance decides about a batch of users, it tells the store which versions its views
// contain (capping.Batch.Known). If a partition of the store has changed since the version that the instance knows,
// the store does not decide about the users of this partition.
package live
