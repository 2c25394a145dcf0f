// Package pressure counts the messages that people receive, by week, segment, channel and namespace, from the audit.
// Package pressure also finds the users who have reached a limit, the campaigns with the most messages, and the
// campaigns that caused denials of other campaigns.
//
//	records in time order → messages: sends, minus releases → pages: numbers of each user → histograms → api.Pressure
//	                      → denials by limits: who had sent to these users within the limit's window
//
// # Definitions
//
// A week is a period of 7 days. The latest week ends at Config.Until, and each earlier week ends where the next week
// begins. Weeks that end at the current time have equal lengths, but the current calendar week would contain almost no
// messages on a Monday. A caller who prefers calendar weeks sets Config.Until to the beginning of a Monday.
//
// A send counts in the week of the call. A send with "enforce": false counts, too. A repeated call for the same send
// does not count, unless the result of the first call was unknown. If the first result was unknown, the send counts at
// the time of the repeated call. A release (removal of a send) reduces the count of the week with the latest send of
// the message on the channel. A release with an unknown result reduces the count only when a repeated release reports
// that the user's log contains no send of the message. Sends that are missing in the audit, such as imported sends or
// lost sends, do not count. Messages to erased users do not count, because readers of the audit hide erased users.
// Erased users count as users without messages until a new build of the segments omits these users.
//
// For all weeks, package pressure takes the segment of a user from the segments generation (published version) in use.
// The people without a message are the users of a segment who received no message in a week. For users in no segment,
// package pressure cannot count the people without a message.
//
// A user has reached a limit if the limit would deny the next send to the user. Package pressure applies the limits of
// the policy in force to the sends in the audit. Shadow limits (limits on trial) deny nobody, so package pressure omits
// shadow limits. Package pressure also omits limits with a maximum of 0.
//
// A campaign is a message on one channel. A user counts as held back from a campaign when a limit denies the campaign
// to the user for the first time within the counted weeks. Later denials of the campaign to the user, by any limit, do
// not count. Denials by suppression, the holdout (control group) or quiet hours do not count, either. If the maximum of
// the limit was 0, the denial does not count, because no other campaign caused the denial. The takers for such a user
// are the campaigns whose earlier sends to the user used up the limit. A user may have several takers. If several
// segments have limits with the same name and different windows, the longest window decides which sends used up the
// limit. A campaign with fewer than Config.MinTaken sends is never a taker (campaign that caused denials). Only the
// mostTakers largest campaigns can be takers.
//
// # Memory and speed
//
// Package pressure stores the numbers of messages of 65,536 consecutive users in bitmaps, one for each binary digit of
// the numbers (bitmap.Counts). Each bitmap takes 8 KiB, for one week and one row of the output. A call with many users
// is cheap to count, with a few operations for each 64 users. If the bitmaps would exceed Config.MemoryBytes, package
// pressure first counts only the lower half of the users. It then reads the audit records again for the other users.
//
// The sends of a message stay in memory, as bitmaps from the audit records, until no release and no limit can concern
// these sends.
package pressure
