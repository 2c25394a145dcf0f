// Package live keeps the changes that calls make to sets between two builds. It knows neither stores nor calls.
//
// # Rules
//
// A live change adds a user to a set, removes the user, or forgets the user's earlier changes. The change with the
// latest instant wins; at equal instants an addition wins. Changes can therefore be
// applied in any order and repeatedly with the same result.
//
// A set of a generation has an as-of instant: the build contains the changes up to that instant. A later change
// takes precedence over the build. An earlier change has no effect, because the build is newer. An addition
// counts for one minute (Margin) longer, because the clocks of the build and of the service may differ, and
// a wrong suppression is better than a message to somebody who objected.
//
// When every generation in use contains a change, the store removes it and records the instant (Lists.Freed). A
// generation with an earlier as-of instant lacks removed changes, so the service must not allow sends by it.
//
// # From a call to a decision
//
//	Store.Change     one record for each call, stored durably; then Lists.Apply
//	Lists            the latest change of each user: 10 bytes each, in blocks of 65,536 users
//	Lists.View       a set of a generation with the changes; immutable
//	View.Mark        the users of a batch who are members: one lookup in a bitmap, as without changes. Changes of
//	                 the last second are looked up beside it, until Lists.Merge has put them into the bitmap.
//
// If the ids of a deployment are not dense, users are 64-bit images, and bitmaps hold numbers instead. A View then
// looks up the changes of users beside the bitmap (NewOfImages). A change then takes 14 bytes, and 8 more bytes in each
// View.
//
// A store with several instances gives each partition a version. The caller of a batch says which versions its views
// contain (capping.Batch.Known). The store decides no user of a partition that has changed since.
package live
