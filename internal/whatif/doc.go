// Package whatif replays the recorded calls under other limits or other segments, and computes how the decisions
// would have changed.
//
//	records in time order → call: counted as recorded → users who are judged again: capping.Capper over their
//	other history → both histories settled → tallies: what changes → Result → page: table and pictures
//
// # Demand
//
// Every decided user of a recorded filter call counts as demand, in the order of the records, including denied users.
// The replay assumes that callers ask again for a denied user exactly as often as recorded. Unavailable users are no
// demand, because their retry is. A replay of an unknown send, from before the audit or from a call whose answer was
// lost, counts as a send at the time of the replay. A release removes the message's sends from both histories. An
// exempt send counts in both.
//
// # Two histories
//
// Each user has two histories: the recorded sends, and the sends under the other policy. The recorded outcome stands
// while both histories are equal and the rules for the user's send have not changed. The recorded outcome stands even
// if the decision depended on milliseconds that no record holds. All other users are judged by the domain's own code:
// a capping.Capper over the other histories, as of the record's time. A replay under the limits in force therefore
// changes no user.
//
// The rules are the same if both policies withhold sends on the channel from the same sets, for the same share of
// users and at the same hours, and have the same limits for the segment (likeness). A message is also judged if one
// policy's retention keeps it in the log and the other's does not.
//
// With another generation than the record's own, every user is judged. Segments are then counted by that generation
// on both sides, so that a row concerns the same users.
//
// # Memory and speed
//
// A history is a list of call numbers, 4 bytes each, in blocks of 16, 32, 64 … bytes on a page of 65,536 ids. A
// user's slot takes 4 bytes, in groups of 64 ids if the page has few users. A second list exists only for users whose
// histories differ. Sends to a page without judged users stay in the records' bitmaps until somebody is judged. Where
// no user diverged and the rules are the same, the replay handles whole bitmaps at once. Changed users take 2 bytes
// and a bit more for each id of their page. The replay drops sends that no limit looks back to. The replay checks
// 4,096 users at a time, so that the data of these users stays in a core's cache.
//
// Where ids are not dense, the replay numbers the users in the order in which it meets them (package numbering). That
// takes about 20 bytes more a user. Segments, sets and shares are asked for users by their images.
//
// # Report
//
// The report shows the result of a replay as tables of text, or as one HTML page with pictures. Each picture has its
// numbers beside it. The page needs no other files and no script.
package whatif
