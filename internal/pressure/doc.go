// Package pressure counts in the audit how many messages people receive, by week, segment, channel and namespace.
// Package pressure also counts which users have reached a limit, which campaigns sent most messages, and which
// campaigns caused denials for other campaigns.
//
//	records in time order → messages: sends, minus releases → pages: numbers of each user → histograms → api.Pressure
//	                      → denials by limits: who had sent to these users within the limit's window
//
// # Definitions
//
// A week is a period of 7 days. In a count of messages per person, the latest week ends at Config.Until, and each
// earlier week ends where the next week begins. Weeks that end now are comparable on every day, while a calendar week
// would contain almost no messages on each Monday. A caller who prefers calendar weeks sets Config.Until to the
// beginning of a Monday.
//
// A send counts in the week of its call. A send with "enforce": false counts too. If a caller repeats a call for the
// same send, the repeated call does not count, because the first call has already been counted. If the result of the
// first call for a send was unknown, the repeated call counts as a send at the time of the repeated call. A release
// reduces a count: that of the week in which the latest send of the message on the channel was made. If a release has
// an unknown result, it takes the send out of the counts when a repeated release reports that the user's log contains
// no such send. If the audit does not contain a send, such as an imported send or a lost send, the send is not counted.
// Messages to erased users are not counted, because readers of the audit leave them out. Erased users are counted as
// users without messages until a new build of the segments no longer contains them.
//
// For all weeks, package pressure takes the segment of a user from the current segments generation. The people
// without a message are those users of a segment who received no message in a week. Package pressure cannot count how
// many of the users in no segment received no message.
//
// A user has reached a limit if the limit would deny the user the next send. Package pressure applies the limits of
// the current policy to the sends in the audit. Shadow limits (on trial) deny nobody, so package pressure leaves them
// out. Package pressure also leaves out limits with a maximum of 0.
//
// A campaign is a message on one channel. A user counts as held back from a campaign when a limit denies the campaign
// to the user for the first time within the counted weeks. Later denials of the user by the same limit for the same
// campaign are not counted again. If suppression, the holdout (control group) or quiet hours deny a user, the user is
// not counted as held back. If the limit of the user's segment had a maximum of 0, the denial is not counted, because
// no other campaign caused it. The takers of a user who was held back are the campaigns whose earlier sends to the user
// used up the limit. A user may have several takers. If several segments have limits with the same name and different
// windows, the longest window decides which sends used up the limit. A campaign with fewer than Config.MinTaken sends
// is never a taker (a campaign that kept users from other messages). If there are too many campaigns, only the
// mostTakers largest campaigns can be takers.
//
// # Memory and speed
//
// For 65,536 consecutive users, package pressure stores the numbers of messages bit-sliced: one bitmap for each
// binary digit (bitmap.Counts). For one week and one row of the output, each bitmap of 65,536 users takes a page of 8
// KiB. A call with many users is cheap to count: it needs a few operations for each 64 users. If the bitmaps would
// exceed Config.MemoryBytes, the pass over the audit records counts only the lower half of the users. A further pass
// over the audit records counts the other users.
//
// The sends of a message stay in memory, as bitmaps from the audit records, until no release and no limit can concern
// them.
package pressure
