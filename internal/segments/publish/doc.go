// Package publish changes the generations of segments at a location. Package publish makes a generation live, rolls
// back to an earlier generation, puts publishing on hold, lists and compares generations, and removes unneeded objects.
// The guard of package publish decides which changes may go live without approval.
//
// # Publishing
//
// A publish writes the bitmaps first, then the manifest, then current.json. A crash at any point leaves the live
// generation intact, and the next run succeeds. If two publishers start from the same live generation, one publisher
// succeeds; the other publisher gets objects.ErrLostRace and has changed nothing. A publish does not write content that
// is already live.
//
// A publish succeeds only if the store has all objects. The publisher checks each stored object before and after the
// swap, and reads current.json back. The publisher also reads back each hold and each lease that it wrote. A publish
// therefore fails if the store confirmed one of these documents and then lost the document.
//
// A Session represents one publish. A Session checks controls.json before the inputs are read, after the live
// generation is read, and before each swap. The Session downloads controls.json only if the tag of the object has
// changed.
//
// # Guard
//
// Bounds.Judge compares a Proposal with the live generation. If no generation is live, Judge compares with the newest
// generation. If no generation exists, Judge checks a first publish for flaws (Flaw). The guard limits the changes of
// one publish and also the drift of a week, because 19 % every night add up. Judge reports all refusals at once. Judge
// refuses segments that vanish, empty, appear or fill. Judge refuses a publish if too many users join a segment, leave
// a segment, or are in no segment afterwards. Judge also refuses too few or too many users, inputs below their
// expectations, and withdrawn content. The caller decides whether to override a refusal.
//
// An acceptance approves one change of one segment or set. The change in the acceptance must equal the real change
// after rounding; the guard still judges every other change. An acceptance is valid for only one publish, and the
// manifest of the publish records the acceptance. Later manifests repeat recent acceptances, so that a service that was
// down finds each acceptance.
//
// The guard judges sets like segments. A set that only grows may lose at most its MaxLoss per publish, and usualWeek
// times MaxLoss per week. The guard limits the users who join a set that only grows as a share of all users. A set of a
// time zone never vanishes or empties without approval, and most of its users must not fall to no zone. The manifest
// stores whether a set only grows; a build that does not mention this setting inherits it.
//
// # Sets that only grow
//
// Only an acceptance removes users from a set that only grows. A rollback keeps the live content of a set that only
// grows (PlanRollback), and adds earlier users who left without an acceptance. A hold does not stop a candidate that
// only adds users to sets that only grow. SetsThatGrew extracts the sets that only grow from a refused candidate.
//
// # Amends
//
// An amend replaces sets of the live generation and takes everything else over by reference, so an amend reads only the
// bitmaps of its sets. The as_of of a set decides between an amend and a build: the build keeps the amended users if
// its own files are not later. In a set that only grows, the build joins the amended users and its own users. The union
// of two versions has the earlier as_of, and AmendedAsOf keeps protecting the amended users. After a lost race, an
// amend repeats its work over any new live generation. A build repeats its work only over a generation that amends
// alone have made (LiveState.AmendedSince). A repeated publish shares the bitmaps in memory (Session) and checks the
// stored objects without storing them again (Publisher).
//
// A Collector (gc) never removes a bitmap that an amend takes over. The bitmap is live before the swap, and the swap
// fails if another generation became live. The publisher lists the location to check that each bitmap that an amend
// takes over exists.
//
// If ids are not dense, Candidate.Over gives an amend the numbers of the live generation. If the live dictionary has
// all ids of the amend, the amend takes over the dictionary and the Back. If the live dictionary lacks ids of the
// amend, Over inserts the new ids (segments.Insertion). The amend then stores the dictionary, the Back and every bitmap
// with the new numbers. The guard still compares only the amended sets. A build that keeps amended users whose ids are
// in no file inserts the ids of these users in the way of an amend. AmendedSince reads both generations if their
// numbers differ, because its result depends on their users.
//
// # Withdrawing
//
// Content that a rollback replaced does not go live again without approval, whatever its new name. The object
// controls.json stores a hash of the whole content, and a hash of each segment and set that differed from its
// replacement. A hold in controls.json stops all publishing. A rollback writes controls.json before it replaces
// current.json, and a hold rewrites current.json after it writes controls.json. A publisher reads controls.json after
// it has read the tag of current.json. No publisher can therefore miss a change of the controls.
//
// # Ids that are not dense
//
// ReadIDs returns the kind and the key of a location's ids before a build reads its inputs. The first publish creates
// ids.json, unless another process has created the object. Every later publish checks that ids.json has not changed
// since the start of the build. The guard reads earlier generations with the numbers of the candidate's dictionary
// (Session.Numbering). A rollback that keeps live sets, and a publish of the sets that grew, unite the dictionaries of
// both generations.
//
// # Collecting
//
// A Collector never removes an object of a generation that is live or is going live. A Collector takes a lease
// (gc.json), rewrites current.json with different bytes (the fence), and lists the objects. The Collector then removes
// manifests first, and unused bitmaps and dictionaries afterwards. Before each removal, the Collector checks that
// current.json is unchanged. In step (1), a publisher reads current.json. In step (2), the publisher waits until no
// Collector holds the lease. In step (3), the publisher stores or checks every object. In step (4), the publisher
// replaces current.json if its tag is still the tag from step (1). If only a fence changed the tag, the publisher
// starts again at step (1).
//
// If the fence comes after the swap, the Collector finds the new generation and keeps its objects. If the fence comes
// before step (1), the publisher sees the lease in step (2), so all removals end before step (3). A fence between steps
// (1) and (4) makes the swap fail. The proof needs no synchronised clocks: a lease expires if it has not changed for
// its duration, by the clock of the process that waits. The holder of the lease uses only the first half of the
// duration after a renewal; the second half is reserved for requests in flight.
//
// # History
//
// A History lists and compares the generations of a source for display; no decision depends on a History. A History
// caches the list for listAge, and recent comparisons forever. If the bitmaps of two generations have more than
// mostBytes, a History compares only their sizes, not their users.
package publish
