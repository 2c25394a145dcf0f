// Package publish is what is done with generations of segments: making one live,
// rolling back to an earlier one, holding all publishing, listing them, comparing
// them, and removing what nobody needs any more. Package guard beside it says what
// may go live unasked.
//
// # Publishing
//
// Bitmaps first, the manifest next, current.json last, so a crash at any point
// leaves the live generation whole and the next run succeeds. Of two publishers
// that began from the same live generation one wins, the other gets
// objects.ErrLostRace and has changed nothing. What is live already is not published
// again, and bitmaps of the live generation, which have been read, are not stored
// again; others that exist are, which makes them whole and young.
//
// A publish has ended well when the store has all of it: each object that was stored is
// looked for, before the swap and after it, and current.json is read back. A document that
// was swapped is read back as well, so that a hold or a lease that a store acknowledged and
// lost is an error.
//
// # Acceptances
//
// A Candidate may hold changes of single segments and sets that somebody let pass by name.
// Publish notes them in the manifest, together with those of the live one that are young
// enough (segments.Manifest.CarriedAccepted): a service that was away finds each.
//
// # Sets that only grow
//
// Nothing but an acceptance takes a user off such a set. A rollback leaves them as they
// are live (PlanRollback), and publishes a generation of its own where that is not what the
// earlier one says; with users of then who have left by no acceptance it is the union. A
// hold does not stop a candidate that differs from what is live by users who join them, and
// SetsThatGrew makes one of a candidate that is refused.
//
// # Collecting
//
// A Collector never takes anything of what is live or becomes it, whoever
// publishes, rolls back, stops or is killed beside it. It holds a lease (gc.json),
// gives current.json other bytes that say the same (the fence), looks at what is
// there, and removes manifests first, then bitmaps that no other manifest names;
// before each it looks whether current.json is still as it left it, and stops if
// not. Whoever makes a generation live (1) reads current.json, (2) waits until
// nobody holds the lease, moving current.json so that a holder stops, (3) stores
// every object or looks that it is there, (4) replaces current.json if it still
// has the tag of (1); where only a fence has moved it, all again from (1).
//
// Take such a swap and any collection. If the fence came after the swap, the
// collector sees the new generation as live and keeps it. If it came before (1), the
// lease, which is older, was seen in (2), so that every removal was over before (3).
// Between (1) and (4) it cannot have come: each writing of current.json has bytes of
// its own, and the swap would have failed. Nothing of this needs two clocks to agree
// or an object to be young. A holder that was killed is one whose lease has not
// changed for as long as it says, by the watch of who waits; the holder itself uses
// only half of that after each renewal, so what is left to trust is that a request is
// not carried out later than the other half after its sender gave it up. A gc of
// an older tool knows no lease: against that, objects are made young before the
// swap, and looked for once more after it.
//
// # Withdrawing
//
// What was rolled back from does not go live again unasked, whatever its new
// generation would be called: controls.json keeps a hash of the names, the order and
// the users of its segments and sets, and one of the name and the users of each that was not
// the same in what went live instead. What differs in every segment and set passes. A hold
// there stops all publishing. It is a document beside current.json, whose readers
// take no key that they do not know. A rollback writes it before it replaces
// current.json, a hold moves current.json after it has written it, and a publisher
// reads it after the tag of current.json that it must find again at its swap: so none
// goes live on what it said before.
//
// A Session is one publish: it asks for the document before the inputs are read, when the
// live generation is known, and before each swap. It reads the document once, and again only
// if its tag has changed.
//
// # Files
//
// candidate is what was built, live what it is published over, session what one publish has read; publisher and upload
// make it live, collect and lease remove, document replaces what others read;
// controls says what must not go live, withdraw changes that; carry is of sets that only
// grow; compare, history and
// earlier look at generations.
//
// # History
//
// Package history tells of the generations at a source: what there are, and what
// changed between two. It reads the source alone, beside the refresher, for people who
// look; nothing that decides waits for it.
//
// What it has read it keeps for a while: the list for ListAge, and the last comparisons
// for good, as a generation never changes. Two generations are compared user by user
// while their bitmaps together are no larger than MostBytes; of larger ones the sizes
// alone are told, which stand in the manifests.
//
// # Guard
//
// Package guard says what may go live without somebody's word for it. Policy and
// arithmetic stand together here; who publishes shows it a Proposal and is told what
// changes and what speaks against it (Bounds.Judge). Whether that is overruled is
// the caller's to say.
//
// A proposal is compared with what is live; where nothing is, with the newest
// generation that is there; where there is none, it is judged as a first publish,
// by its flaws (Flaw). What changes is bounded for one publish, and once more since
// a week ago: 19 % every night are not 19 % after a week. A segment that vanishes or
// empties, one that appears or fills unasked, too many users that come, go or fall to
// no segment, too few or too many users, inputs that lack what was expected of them,
// and what was rolled back from: each is a refusal, and all are told at once.
//
// An Acceptance lets one change of one segment or set pass, and no other: what it states
// must be the real change, rounded as it is written, and what it does not state is judged.
// It passes once: a manifest that has recorded it shows that it was used.
//
// Sets are judged as segments are. One that only grows loses at most its MaxLoss in one
// publish, and usualWeek times that in a week; users who join it are bounded by the share of
// all users. A set of a time zone never vanishes or empties unasked, however small it is, nor
// do most of its users fall to no zone. The direction of a set is in the manifest: a build that
// says nothing of it inherits it, one that says less is refused.
//
// The defaults are UsualMaxChange, and usualWeek times a segment's bound for a week.
package publish
