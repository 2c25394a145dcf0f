// Package publish changes the live generation (published version that current.json names) of a location (directory or
// bucket). Package publish makes a generation live, rolls back to an earlier generation, puts publishing on hold, lists
// and compares generations, and removes unneeded objects. A guard in package publish refuses changes that need an
// operator's approval.
//
// # Publishing
//
// A publish writes the bitmaps first, then the manifest, then the pointer current.json. After a crash at any point, the
// live generation is intact and the next publish succeeds. If two publishers start from the same live generation, one
// publisher succeeds; the other publisher gets objects.ErrLostRace and has changed nothing. A publish of content that
// is already live stores no new generation.
//
// A publish succeeds only if all objects exist at the location. The publisher checks that each object exists before and
// after it replaces current.json, and reads current.json back. The publisher also reads back each hold (stop of all
// publishing) and each lease that it wrote. A publish therefore fails if the object store confirmed the write of
// current.json, a hold or a lease, but lost the document.
//
// A Session represents one publish. A Session looks in controls.json for a hold (stop of all publishing) three times:
// before it reads the inputs, after it has read the live generation, and before it replaces current.json. The Session
// downloads controls.json only if the object's tag has changed.
//
// # Guard
//
// Bounds.Judge compares a Proposal (built generation with facts about its inputs) with the live generation. If no
// generation is live, Judge compares with the newest generation. If no generation exists, Judge checks a first publish
// for flaws (Flaw). The guard limits the change by one publish and also the total change within a week, because losses
// of 19 % every night would add up. Judge reports all refusals at once. Judge refuses a publish in which a segment
// appears, vanishes, becomes empty or is no longer empty. Judge refuses a publish if too many users join a segment,
// leave a segment, or are in no segment afterwards. Judge also refuses too few or too many users, input files with
// fewer rows than expected, and content that an operator rolled back before. The caller decides whether to override a
// refusal.
//
// An acceptance is an operator's approval of one change of one segment or set. The approved change must equal the real
// change after rounding; the guard still judges every other change. An acceptance is valid for only one publish, and
// the manifest of that publish records it. Later manifests repeat recent acceptances, so that a service that was down
// finds each acceptance.
//
// The guard judges sets by the same rules as segments. A set that only grows may lose at most MaxLoss percent of its
// users per publish, and usualWeek times MaxLoss percent per week. If a set only grows, the guard limits the number of
// joining users to a percentage of all users. Without approval, a time zone set must not vanish or become empty, and
// most of its users must stay in some time zone set. The manifest stores whether a set only grows; a build that does
// not mention this setting inherits it.
//
// # Sets that only grow
//
// Without an operator's acceptance, a publish removes at most the few users that MaxLoss allows from a set that only
// grows. A rollback keeps the live users of a set that only grows (PlanRollback), and adds users of the earlier
// generation who left without an acceptance. During a hold (stop of all publishing), a publisher may still publish a
// candidate (built generation) whose one change is that it adds users to sets that only grow. SetsThatGrew extracts the
// sets that only grow from a candidate that the guard refused.
//
// # Amends
//
// An amend is a publish that replaces some sets of the live generation and refers to the stored bitmaps of everything
// else. An amend therefore reads only the live bitmaps of the replaced sets. A build keeps the users of an amended set
// unless the build's files for the set have a later as_of (time up to which the users reflect all changes). If an
// amended set only grows, the build publishes the amended users together with the users from its files. The union of
// two versions of a set has the earlier as_of of the two. The field AmendedAsOf keeps later builds from removing the
// amended users. If another process publishes first, an amend repeats its work with the new live generation. If another
// process publishes first, a build repeats its last steps only if all publishes since the start of the build were
// amends (LiveState.AmendedSince). A repeated publish uses the bitmaps that are already in memory (Session). The
// repeated publish checks the stored objects without storing them again (Publisher).
//
// A Collector (command gc) never removes a bitmap to which an amend refers. Each bitmap to which an amend refers
// belongs to the live generation. The amend fails if another generation becomes live before the amend replaces
// current.json. The publisher lists the objects of the location to check that each bitmap to which an amend refers
// exists.
//
// If ids are not dense (32-bit numbers), Candidate.Over converts the bitmaps of an amend to the user numbers of the
// live generation. If the live dictionary has all ids of the amend, the amend refers to the stored dictionary and
// BackFile. If the live dictionary lacks ids of the amend, Over inserts the new ids (segments.Insertion). If an amend
// has new ids, it stores a new dictionary, a new BackFile and every bitmap with the new user numbers. If an amend has
// new ids, the guard still compares only the sets that the amend replaces. If a build keeps amended users whose ids are
// in none of its files, it inserts the ids of these users into its dictionary. If the user numbers of two generations
// differ, AmendedSince reads both generations, because its result depends on their users.
//
// # Withdrawing
//
// Content that a rollback replaced (withdrew) does not go live again without approval, not even in a generation with
// another name. The object controls.json stores a hash of the whole replaced content, and of each segment and set that
// differed from its replacement. A hold in controls.json stops all publishing. A rollback writes controls.json before
// it replaces current.json. To set a hold, a publisher writes controls.json and then rewrites current.json with other
// bytes. A publisher reads controls.json after it has read the tag of current.json. After every change of
// controls.json, the tag of current.json thus changes, and no publisher can miss the change.
//
// # Ids that are not dense
//
// ReadIDs returns the kind and the hash key of a location's user ids, before a build reads its inputs. The first
// publish creates ids.json, unless another process has created the object. Every later publish checks that ids.json has
// not changed since the start of the build. If ids are not dense, the guard converts the bitmaps of earlier generations
// to the user numbers of the candidate's dictionary (Session.Numbering). A rollback that keeps the live users of a set
// mixes bitmaps of the live generation and an earlier generation. The user numbers in these bitmaps must be those of
// one dictionary, so the rollback needs a dictionary with the ids of both generations (SameNumbers). A publish of only
// the sets that grew also needs a dictionary with the ids of both generations.
//
// # Collecting
//
// A Collector never removes an object of a generation that is live or that a publisher is about to make live. A
// Collector takes a lease (the object gc.json), rewrites current.json with different bytes (the fence), and lists the
// objects. The Collector removes manifests first, and unused bitmaps and dictionaries afterwards. Before each removal,
// the Collector checks that current.json is unchanged. In step (1), a publisher reads current.json. In step (2), the
// publisher waits until no Collector (command gc) holds the lease on the location. In step (3), the publisher stores
// the objects of the generation, or checks that they exist. In step (4), the publisher replaces current.json, but only
// if its tag is still the tag from step (1). If only a Collector's fence changed the tag, the publisher starts again at
// step (1).
//
// If the Collector writes the fence (rewrite of current.json) after step (4), the Collector finds the new generation
// and keeps its objects. If the Collector writes the fence before step (1), the publisher sees the Collector's lease in
// step (2). All removals by the Collector therefore end before step (3). A fence (rewrite of current.json) between
// steps (1) and (4) makes step (4) fail. Leases need no synchronised clocks. A process treats a lease as expired if, by
// the clock of that process, the lease has not changed for its whole duration. After a renewal, the holder of a lease
// uses only the first half of the lease's duration. The second half of a lease's duration is reserved for requests in
// flight.
//
// # History
//
// A History lists and compares the generations of a source for display in the console and the API; no decision depends
// on a History. A History caches the list of generations for the duration listAge, and recent comparisons without a
// time limit. If the bitmaps of two generations take more than mostBytes together, a History compares only the user
// counts of the generations, not their users.
package publish
