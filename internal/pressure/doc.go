// Package pressure counts in the audit how many messages people receive, by week, segment, channel and namespace. The
// package also counts which users have reached a limit, which campaigns sent most messages, and which campaigns caused
// denials for other campaigns.
//
//	records in time order → messages: sends, minus releases → pages: numbers of each user → histograms → api.Pressure
//	                      → denials by limits: who had sent to these users within the limit's window
//
// # Definitions
//
// A week is a period of 7 days. The latest week ends at Config.Until, and each earlier week ends where the next week
// begins. Weeks of 7 days are comparable on every day, while a calendar week would contain almost no messages on each
// Monday. A caller who prefers calendar weeks sets Config.Until to the beginning of a Monday.
//
// A send counts in the week of its call. A send with "enforce": false counts too. A repeated call for the same send
// does not count, because the first call has already been counted. If the result of the first call for a send was
// unknown, the repeated call counts as a send at the time of the repeated call. A release cancels the latest send of
// the message on the channel, and the cancellation counts in the week of this send. A release with an unknown result
// cancels the send when a repeated release reports that the user's log contains no such send. Sends that the audit
// does not contain, such as imported sends and lost sends, are not counted. Messages to erased users do not count,
// because readers of the audit leave them out. Erased users count as users without messages until a new build of the
// segments no longer contains them.
//
// For all weeks, the segment of a user is the segment in the current segments generation. The people without a message
// are the users of a segment who received no message. For the users in no segment, the number of people without a
// message is unknown.
//
// A user has reached a limit if the limit would deny the next send. Package pressure applies the limits of the current
// policy to the sends in the audit. Shadow limits (on trial) deny nobody, so package pressure leaves them out. Package
// pressure also leaves out limits with a maximum of 0.
//
// A campaign is a message on one channel. A user counts as held back from a campaign when a limit denies the user for
// the first time within the counted weeks. Later denials of the user by the same limit for the same campaign do not
// count again. Denials by suppression, holdout and quiet hours do not count. A denial by a limit of 0 (for the user's
// segment, in the policy of the call) does not count, because no other campaign caused it. The takers of a user who
// was held back are the campaigns that had sent to the user within the window and on the channels of the limit. A
// user may have several takers. If several segments have limits with the same name and different windows, the longest
// window counts. A campaign with fewer than Config.MinTaken sends is never a taker (a campaign that kept users from
// other messages). If there are too many campaigns, only the mostTakers largest campaigns are takers.
//
// # Memory and speed
//
// For 65,536 consecutive users, package pressure stores the numbers of messages bit-sliced: one bitmap for each
// binary digit (bitmap.Counts). Each such bitmap, for one week and one row of the output, takes a page of 8 KiB.
// Adding a call with many users needs a few operations for each 64 users. If the pages would exceed
// Config.MemoryBytes, the pass over the records counts only the lower half of its users. A further pass over the
// records counts the other users.
//
// The sends of a message stay in memory, as bitmaps from the audit records, until no release and no limit can depend on
// them.
package pressure
