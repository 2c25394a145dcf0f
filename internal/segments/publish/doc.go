// Package publish changes the generations of segments at a location: it makes a generation live, rolls
// back to an earlier one, puts publishing on hold, lists and compares generations, and removes unneeded
// objects. Its guard decides which changes may go live without approval.
//
// # Publishing
//
// A publish writes the bitmaps first, then the manifest, then current.json. A crash at any point leaves
// the live generation intact, and the next run succeeds. If two publishers start from the same
// live generation, one wins; the other gets objects.ErrLostRace and has changed nothing. Content that is
// already live is not published again.
//
// A publish succeeds only if the store has everything: each stored object is checked before and after
// the swap, and the publish reads current.json back. It also reads back each hold and each lease that it
// wrote. So it fails if the store confirmed such a document and then lost it.
//
// A Session represents one publish. It checks controls.json before the inputs are read, after the live
// generation is known, and before each swap, but downloads the document only if its tag has changed.
//
// # Guard
//
// Bounds.Judge compares a Proposal with the live generation. If none is live, it compares with the newest
// generation; if there is none, it judges a first publish by its flaws (Flaw). It limits the changes of
// one publish and also the drift of a week, because 19 % every night add up. All refusals are reported
// at once: segments that vanish, empty, appear or fill, too many users who join, leave or fall to no
// segment, too few or too many users, inputs below their expectations, and withdrawn content. The caller
// decides whether to override a refusal.
//
// An acceptance approves one change of one segment or set. The change that it states must equal the real
// change as rounded; every other change is still judged. An acceptance is valid once, and the manifest
// records it. Later manifests repeat recent acceptances, so that a service that was down finds each.
//
// Sets are judged like segments. A set that only grows may lose at most its MaxLoss per publish, and
// usualWeek times that per week. The users who join it are limited as a share of all users. A set of a time
// zone never vanishes or empties without approval, and most of its users must not fall to no zone. The
// manifest stores whether a set only grows; a build that does not mention it inherits this.
//
// # Sets that only grow
//
// Only an acceptance removes users from a set that only grows. A rollback keeps the live content of such
// a set (PlanRollback). Earlier users who left without an acceptance are added again. A hold does not
// stop a candidate that only adds users to such sets, and SetsThatGrew extracts this part from a refused
// candidate.
//
// # Amends
//
// An amend replaces sets of the live generation and carries everything else over by reference, so it reads
// only the bitmaps of its sets. The as_of of a set decides between an amend and a build: the build keeps
// the amended users if its own files are not later, and joins both in a set that only grows. The union
// of two versions has the earlier as_of, and AmendedAsOf keeps protecting the amended users. After a lost
// race an amend repeats its work over every generation, and a build over one that only amends have made
// (LiveState.AmendedSince). A repeated publish shares the bitmaps in memory (Session) and checks the
// stored objects without storing them again (Publisher).
//
// No gc removes a carried bitmap: it is live before the swap, and the swap fails if anything else became
// live. A list of the location shows that each of them exists.
//
// With ids that are not dense, Candidate.Over gives an amend the numbers of the live generation. If the live dictionary
// has all ids of the amend, it is carried over together with the Back. Otherwise Over inserts the new ids
// (segments.Insertion), and the amend stores the dictionary, the Back and every bitmap with the new numbers. The guard
// still compares only the amended sets. A build that keeps amended users whose ids are in no file inserts these ids in
// the same way. AmendedSince reads both generations if their numbers differ, because the answer depends on their users.
//
// # Withdrawing
//
// Rolled-back content does not go live again without approval, whatever its new name. controls.json stores
// a hash of the whole content, and a hash of each segment and set that differed from its replacement. A
// hold in controls.json stops all publishing. A rollback writes controls.json before it replaces
// current.json; a hold rewrites current.json after it writes controls.json; a publisher reads controls.json
// after it has read the tag of current.json. No publisher can therefore miss a change of the controls.
//
// # Ids that are not dense
//
// ReadIDs returns the kind and the key of a location before a build reads its inputs. The first publish makes ids.json,
// if no other process has made it, and every later publish checks that the object is the one of the start. The guard
// reads earlier generations by the numbers of the candidate's dictionary (Session.Numbering). A rollback that keeps
// live sets, and a publish of the sets that grew, unite the dictionaries of both generations.
//
// # Collecting
//
// A Collector never removes an object of a generation that is live or is going live. It takes a lease
// (gc.json), rewrites current.json with different bytes (the fence), lists the objects, and removes
// manifests first, then unused bitmaps and dictionaries. Before each removal it checks that current.json is unchanged.
// A publisher (1) reads current.json, (2) waits until nobody holds the lease, (3) stores or checks every
// object, (4) replaces current.json if its tag is still the one from (1). If only a fence changed the
// tag, the publisher starts again at (1).
//
// If the fence comes after the swap, the collector sees the new generation and keeps it. If the fence
// comes before (1), the publisher sees the lease in (2), so all removals end before (3). A fence between
// (1) and (4) makes the swap fail. The proof needs no synchronised clocks: a lease expires if it has not
// changed for its duration, by the clock of the process that waits. The holder of the lease uses only the first
// half of the duration after a renewal; the second half is reserved for requests in flight.
//
// # History
//
// History lists and compares the generations of a source for display; no decision depends on it. It caches
// the list for listAge, and recent comparisons forever. Bitmaps of more than mostBytes are not compared
// user by user; only their sizes are.
package publish
