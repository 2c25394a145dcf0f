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
// A send counts in the week of its call. A send with enforce false counts too. A replay does not count, because the
// first call of the send has already been counted. If the result of the first call was unknown, a later replay counts
// as a send at the time of the replay. A release cancels the latest send of the message on the channel, and the
// cancellation counts in the week of this send. A release with an unknown result cancels the send when a repeated
// release reports that the log contains no such send. Sends that the audit does not contain, such as imported sends and
// lost sends, are not counted. Erased users do not count, because readers of the audit leave them out. Erased users
// count as users without messages until a build removes them from the segments.
//
// For all weeks, the segment of a user is the segment in the current generation. The people without a message are the
// users of a segment who received no message. For the users in no segment, the number of people without a message is
// unknown.
//
// A user has reached a limit if the limit would deny the next send. The limits are the limits of the current policy,
// applied to the sends in the audit. Shadow limits deny nobody, so they are left out. Limits with a maximum of 0 are
// left out, too.
//
// A campaign is a message on one channel. The first denial by a limit within the counted weeks counts a user as held
// back from a campaign. Later denials of the user by the limit for the same campaign do not count again. Denials by
// suppression, holdout and quiet hours do not count. A denial does not count if the limit is 0 for the segment of the
// user in the policy of the call, because no other campaign caused the denial. The takers of a user are the campaigns
// that had sent to the user within the window of the limit, on the channels of the limit. A user may have several
// takers. If several segments have limits with the same name and different windows, the longest window counts.
// Campaigns with fewer than Config.MinTaken sends are not takers. If there are too many campaigns, only the mostTakers
// largest are takers.
//
// # Memory and speed
//
// The numbers of messages of 65,536 consecutive users are bit-sliced (bitmap.Counts). The bit-sliced numbers take a
// page of 8 KiB for each bit, week and row. Adding a call with many users needs a few operations for each 64 users. If
// the pages would exceed Config.MemoryBytes, the pass counts only the lower half of its users. A further pass over the
// records counts the other users.
//
// The sends of a message stay in memory, as bitmaps from the records, until no release and no limit can depend on them.
package pressure
