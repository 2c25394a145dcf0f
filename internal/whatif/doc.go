// Package whatif replays the recorded demand under other limits, or other segments, and
// tells what would have happened.
//
//	records in time order → call: counted as recorded → users who are judged anew: capping.Capper over their
//	other history → both histories settled → tallies: what changes → Result → page: table and pictures
//
// # Demand
//
// Every user whom a recorded filter call decided is demand, in the order of the records,
// those who were denied too: whoever was denied is asked for again exactly as often as
// was recorded. Users who were unavailable are no demand (the retry is). A replay of a
// send that is not known, from before the audit or of a call whose answer was lost, is a
// send at the time of the replay. A release takes the message's sends out of both
// histories. An exempt send is counted in both.
//
// # Differential
//
// For each user there are two histories: what was recorded, and what would have been sent.
// As long as they are the same, and the rules that judge the user's send are those that were
// in force, the recorded outcome is the outcome, also where milliseconds decided that no
// record tells. Everybody else is judged by the domain itself: a capping.Capper over
// the other histories, as of the record's time. So replaying under the limits in force
// changes nobody. Rules are those in force when on the send's channel both policies
// withhold sends from the same sets, the same share and at the same hours, and have the same limits for
// the segment (likeness). A message that may be in a log by one policy's retention and
// forgotten by another's is judged, too.
//
// With a generation that is not the record's own everybody is judged, and segments are
// counted by that generation on both sides, so that a row is about the same users.
//
// # Memory and speed
//
// A history is a list of numbers of calls, 4 bytes each, in blocks of 16, 32, 64 … bytes
// of each page of 65,536 ids; a user's slot takes 4 bytes, in groups of 64 ids where a page has few
// users. A second list is stored only for users whose histories differ. What users of
// a page that nobody has judged were sent stays in the records' bitmaps until somebody is:
// so where nobody diverged and rules are the same, whole bitmaps go through at once. Users who change take 2 bytes
// and a bit more for each id of their page. What no limit sees any more is forgotten.
// Users are looked at 4,096 at a time, so that what they need stays near the core.
//
// # Files
//
// engine takes records, policies tells which rules are alike, call what is looked at, settle what
// it comes to, judge is the store that the domain asks, histories and page the
// memory, tally and result the counts.
//
// # Report
//
// Package report shows the result of a replay to people: as tables of text, and as one page of
// HTML with pictures, each with its numbers beside it, that needs nothing from elsewhere and no script.
package whatif
