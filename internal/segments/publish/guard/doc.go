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
package guard
