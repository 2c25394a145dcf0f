// Package whatif replays the recorded calls: it decides the calls again under other limits or other segments, and
// counts the changes of the decisions.
//
//	records in time order → call: counted as recorded → users who are judged again: capping.Capper over their
//	other history → both histories settled → tallies: what changes → Result → page: table and pictures
//
// # Demand
//
// Each user in a recorded filter call counts as one request for a send, unless the user was unavailable (without a
// decision). The replay processes the requests in the order of the records. A caller may make several calls about a
// denied user. The replay assumes that callers would make the same calls under other limits. An unavailable user does
// not count as a request, because the caller retries the call for this user, and the replay counts the retry. If a
// record says that a send is a repetition, but no record has the first send, the repetition counts as the first send.
// If no record has the first send, the send is older than the audit, or belongs to a call whose response was lost. If a
// call releases a message, the replay removes the sends of the message from both histories of a user. A send that
// ignored the limits (exempt) counts in both histories of a user.
//
// # Two histories
//
// Each user has two histories: the recorded sends, and the sends under the alternative policy. The recorded outcome for
// a user remains valid while both histories of the user are equal and the rules for the user's send have not changed.
// The replay also uses a valid recorded outcome if the decision depended on milliseconds that no record contains. The
// replay judges all other users with the code of the service. A capping.Capper reads the sends under the alternative
// policy, and decides at the time of the record. If the alternative limits are equal to the limits that were in force,
// the replay therefore changes no outcome.
//
// The rules for a send are the same if both policies have the same suppressed sets, the same holdout and the same quiet
// hours on the channel. The rules for a user are the same if, in addition, both policies have the same limits for the
// user's segment (likeness). The policies may keep sends in users' logs for different times. If only one of the
// policies still keeps the first sends of the message, the replay also judges all users of the call.
//
// If the replay uses another segments generation (published version) than the recorded call, the replay judges every
// user. The replay then takes the users' segments for both policies from the other generation, so that both counts of a
// row concern the same users.
//
// # Memory and speed
//
// The replay stores a history (list of a user's sends) as call numbers of 4 bytes, in a memory block of 16, 32, 64 …
// bytes. A page of the replay holds the histories (lists of sends) of 65,536 neighbouring ids. For each user, a slot
// (an entry of 4 bytes) says where the memory block with the user's sends is. If a page has few users, it allocates
// memory for 64 neighbouring ids at a time. A user has a second list of sends only if the user's two histories differ.
// Until the replay judges a user of a page, the sends to the page's users remain in the bitmaps of the audit records.
// If the two histories are equal for all users of a block of 65,536 ids, and the rules are the same, the replay
// processes the block's bitmap in one step. When the outcome of a user in the page first differs under the alternative
// policy, the page gets 2 bytes and one bit more for each id. The replay removes a send from the users' histories when
// no limit counts the send any more. The replay checks 4,096 users at a time, so that the data of these users stays in
// the cache of a processor core.
//
// If ids are not dense 32-bit numbers, the replay numbers the users in the order of their first occurrence in the
// records (package numbering). The numbering takes about 20 additional bytes of memory for each user. To look up users
// in segments, sets and shares, the replay uses the id images (64-bit hashes of ids).
//
// # Report
//
// The command shows the result of a replay as tables of text, or as one HTML page with pictures. In the HTML page, a
// table beside each picture shows the picture's numbers. The HTML page needs no other files and no script.
package whatif
