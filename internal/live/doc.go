// Package live keeps live changes: changes of sets of users by API calls, between two builds of the sets. Package live
// does not depend on stores or HTTP calls.
//
// # Rules
//
// A live change is a change of a set by an API call. A live change takes effect immediately, and adds a user, removes a
// user, or cancels a user's earlier changes. If a user has several live changes in a set, only the change with the
// latest time has an effect. If two changes have equal times, an addition takes precedence. Only the latest change has
// an effect. An instance can therefore apply live changes in any order and repeatedly, with the same result.
//
// Each set of a published generation has an as-of time: the build (offline job) that made the set included all live
// changes up to this time. A live change that is later than the as-of time (time of export) of the set overrides the
// build. An earlier live change has no effect, because the build already includes it. The addition of a user even
// overrides builds whose as-of time is less than one minute (Margin) later, because clocks may differ. The reason for
// this margin: it is better to withhold a message by mistake than to send a message to a person who objected.
//
// When all generations (published versions of the sets) in use contain a live change, the store removes the change. The
// store also keeps the latest time of the removed changes (Lists.Freed). If the as-of time (time of export) of a
// generation is earlier than this time, the generation lacks removed changes. The service must not allow sends with
// such a generation.
//
// # From a call to a decision
//
//	Store.Change     one record for each call, stored durably; then Lists.Apply
//	Lists            the latest change of each user: 10 bytes each, in blocks of 65,536 users
//	Lists.View       a set of a generation with the changes; immutable
//	View.Mark        the users of a batch who are members: one lookup in a bitmap, as without changes. View.Mark
//	                 looks up changes of the last second separately, until Lists.Merge puts them into the bitmap.
//
// If user ids are not dense 32-bit integers, package live identifies users by id images (64-bit hashes of ids). With
// such id images, the bitmaps contain a 32-bit number for each user instead of the id. A bitmap therefore cannot
// contain the live changes, so a View (the members of a set) looks up live changes separately (NewOfImages). A live
// change of a user with an id image takes 14 bytes in Lists, and 8 bytes in each View (the members of a set).
//
// A store that several instances share keeps a version for each of its partitions, and replaces this version with each
// live change. When an instance decides about a batch of users, it sends the versions that it has in memory to the
// store (capping.Batch.Known). If the stored version of a partition differs from the version of the instance, the store
// does not decide about the users of this partition.
package live
