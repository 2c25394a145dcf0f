// Package whatif replays the recorded calls under other limits or other segments, and computes how the decisions would
// have changed.
//
//	records in time order → call: counted as recorded → users who are judged again: capping.Capper over their
//	other history → both histories settled → tallies: what changes → Result → page: table and pictures
//
// # Demand
//
// Every decided user of a recorded filter call counts as demand, in the order of the records, including denied users.
// The replay assumes that callers ask again for a denied user exactly as often as recorded. Unavailable users do not
// count as demand, because their retries count. A recorded replay of an unknown send counts as a send at the time of
// the replay. The unknown send is older than the audit, or belongs to a call whose response was lost. A release removes
// the sends of the message from both histories. An exempt send counts in both histories.
//
// # Two histories
//
// Each user has two histories: the recorded sends, and the sends under the other policy. The recorded outcome remains
// valid while both histories are equal and the rules for the user's send have not changed. The recorded outcome remains
// valid even if the decision depended on milliseconds that no record contains. The replay judges all other users with
// the code of the service: a capping.Capper reads the histories under the other policy, as of the record's time. A
// replay under the limits in force therefore changes no user.
//
// The rules for a send are the same if both policies suppress the same sets, hold out the same share of users, and have
// the same quiet hours on the channel. For equal rules, both policies must also have the same limits for the segment
// (likeness). The replay also judges the users of a message if the retention of only one of the two policies still
// keeps the message in the log.
//
// If the replay uses another generation than the record, the replay judges every user. Under both policies, the replay
// then counts segments by the replacing generation, so that both counts of a row concern the same users.
//
// # Memory and speed
//
// A history is a list of call numbers, 4 bytes each, in blocks of 16, 32, 64 … bytes on a page of 65,536 ids. The slot
// of a user takes 4 bytes, in groups of 64 ids if the page has few users. A second list exists only for users whose
// histories differ. Sends to a page without judged users remain in the bitmaps of the records until the replay judges a
// user of the page. If no user of a block diverged and the rules are the same, the replay processes the whole bitmap of
// the block at once. If a user of a page changed, each id of the page takes 2 bytes and one bit more. The replay drops
// sends that no limit counts any more. The replay checks 4,096 users at a time, so that the data of these users stays
// in the cache of a core.
//
// If ids are not dense, the replay numbers the users in the order in which they first occur in the records (package
// numbering). The numbering takes about 20 bytes more for each user. For lookups in segments, sets and shares, the
// replay uses the images of the users.
//
// # Report
//
// The report shows the result of a replay as tables of text, or as one HTML page with pictures. The numbers of each
// picture are in a table beside the picture. The page needs no other files and no script.
package whatif
