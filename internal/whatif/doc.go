// Package whatif replays the recorded calls under other limits or other segments, and computes how the decisions would
// have changed.
//
//	records in time order → call: counted as recorded → users who are judged again: capping.Capper over their
//	other history → both histories settled → tallies: what changes → Result → page: table and pictures
//
// # Demand
//
// Every decided user of a recorded filter call counts as one request for a send, in the order of the records,
// including denied users. The replay assumes that callers ask again for a denied user exactly as often as recorded.
// Unavailable users do not count as requests, because their retries count. If a record calls a send a repetition, but
// the first send is in no record, the repetition counts as the send. A first send that is in no record is older than
// the audit, or belongs to a call whose response was lost. A release removes the sends of the message from both
// histories of a user: from the recorded sends and from those under the other policy. A send that ignored the limits
// (exempt) counts in both histories of a user.
//
// # Two histories
//
// Each user has two histories: the recorded sends, and the sends under the other policy. The recorded outcome for a
// user remains valid while both histories of the user are equal and the rules for the user's send have not changed.
// The recorded outcome remains valid even if the decision depended on milliseconds that no record contains. The
// replay judges all other users with the code of the service: a capping.Capper reads the sends under the other
// policy, as of the record's time. A replay under the limits that were in force therefore changes the outcome of no
// user.
//
// The rules for a send are the same if both policies have the same suppressed sets, the same holdout and the same
// quiet hours on the channel. The rules for a user are the same if, in addition, both policies have the same limits
// for the user's segment (likeness). The replay also judges all users of a call if only one of the policies still
// keeps the first sends of the message in users' logs.
//
// If the replay uses another segments generation than the recorded call, the replay judges every user. With another
// generation, the replay counts the users of both policies by segment in this generation, so that both counts of a
// row concern the same users.
//
// # Memory and speed
//
// The replay stores a history (list of a user's sends) as call numbers of 4 bytes, in a memory block of 16, 32, 64 …
// bytes. A page holds the histories of 65,536 neighbouring ids. For each user, a slot of 4 bytes says where the
// memory block with the user's sends is. A page with few users allocates slots in groups of 64 ids. A user has a
// second list of sends only if the user's two histories differ. While the replay has judged no user of a page, the
// sends to the page's users remain in the bitmaps of the records. If all users of a block of 65,536 ids have equal
// histories, and the rules are the same, the replay processes the block's bitmap at once. As soon as the outcome of
// one user of a page has changed, the page needs 2 bytes and one bit more for each id. The replay removes a send from
// the histories of users when no limit counts the send any more. The replay checks 4,096 users at a time, so that the
// data of these users stays in the cache of a core.
//
// If ids are not dense 32-bit numbers, the replay numbers the users in the order in which they first occur in the
// records (package numbering). The numbers of users take about 20 bytes of memory more for each user. For lookups in
// segments, sets and shares, the replay uses the id images (64-bit hashes of ids).
//
// # Report
//
// The report shows the result of a replay as tables of text, or as one HTML page with pictures. The numbers of each
// picture are in a table beside the picture. The HTML page with the result of a replay needs no other files and no
// script.
package whatif
