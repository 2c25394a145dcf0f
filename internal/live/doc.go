// Package live keeps the changes that API calls make to sets of users between two builds of the sets. The package does
// not depend on stores or HTTP calls.
//
// # Rules
//
// A live change adds a user to a set, removes a user from a set, or cancels the earlier live changes of a user in a
// set. Of several live changes, the change with the latest time wins. At equal times, an addition wins. Because the
// latest change always wins, live changes can be applied in any order and repeatedly, with the same result.
//
// Each set of a generation has an as-of time: the build of the set contains all changes up to this time. A live change
// after the as-of time overrides the build. A live change before the as-of time has no effect, because the build is
// newer. An addition overrides builds whose as-of time is up to one minute (Margin) later, because the clocks of the
// build and of the service may differ. A wrong suppression is better than a message to a person who objected.
//
// When all generations in use contain a change, the store removes the change and records the time of the removed
// changes (Lists.Freed). A generation with an earlier as-of time lacks removed changes, so the service must not allow
// sends with this generation.
//
// # From a call to a decision
//
//	Store.Change     one record for each call, stored durably; then Lists.Apply
//	Lists            the latest change of each user: 10 bytes each, in blocks of 65,536 users
//	Lists.View       a set of a generation with the changes; immutable
//	View.Mark        the users of a batch who are members: one lookup in a bitmap, as without changes. Changes of
//	                 the last second are looked up beside it, until Lists.Merge has put them into the bitmap.
//
// If user ids are not dense, users are 64-bit images. Bitmaps then contain numbers of users instead of ids. For images,
// a View looks up changes separately from the bitmap (NewOfImages). A change then takes 14 bytes in Lists, and 8 bytes
// in each View.
//
// A store that several instances share has a version for each of its partitions. When an instance decides a batch, it
// tells the store which versions its views contain (capping.Batch.Known). The store does not decide users of a
// partition that has changed since the known version.
package live
