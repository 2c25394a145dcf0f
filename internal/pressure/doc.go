// Package pressure counts from the audit how many messages people get: by week, segment, channel and namespace. It also
// counts who is at a limit now, which campaigns use the slots, and which campaigns held users back from others.
//
//	records in time order → messages: sends, minus releases → pages: numbers of each user → histograms → api.Pressure
//	                      → denials by limits: who had sent to these users within the limit's window
//
// # Definitions
//
// A week is a period of 7 days. The latest week ends at Config.Until, and earlier weeks end where the next one begins.
// Rolling weeks are comparable on every day: a calendar week would begin empty on each Monday. A caller who wants
// calendar weeks sets Config.Until to the start of a Monday.
//
// A send counts in the week of its call. An exempt send counts. A replay does not count, because its send was counted
// before. A replay of a send with an unknown result is the first news of that send, and counts as a send at the time of
// the replay. A release takes back the latest send of the message on the channel, and so counts in the week of that
// send. A release with an unknown result takes back the send once a repeat says that the log has no such send. Sends
// without a record, such as imported ones and lost ones, are unknown. Erased users are left out, because the readers of
// the audit leave them out; they stay among the users without messages until a build leaves them out of the segments.
//
// The segment of a user is that of the generation in use, for all weeks. The people without a message are the users of
// a segment who got none. Among the users in no segment this number is unknown.
//
// A user is at a limit if the next send that the limit counts would be denied. The limits are those of the current
// policy, with the sends of the audit. Limits in the shadow deny nobody, and are left out. So are limits of 0.
//
// A campaign is a message on a channel. A user is held back from a campaign by the first denial through a limit
// within the counted weeks, however often callers repeat the call. Suppression, holdout and quiet hours are no
// limits. Denials by a limit that is 0 for the user's segment in the policy of the call do not count, because no
// campaign took a slot. The campaigns that took the user are those that had sent to the user within the window of
// that limit, on its channels. Several campaigns may have taken one user. If segments use one name for different
// windows, the longest one counts. Campaigns with fewer than Config.MinTaken sends, and campaigns beyond the
// mostTakers largest, do not count as takers.
//
// # Memory and speed
//
// The numbers of 65,536 neighbouring users are bit-sliced (bitmap.Counts): a page of 8 KiB for each bit, week and
// row. Adding a call with many users costs a few operations for each 64 users. Where these pages exceed
// Config.MemoryBytes, a pass counts only the lower half of its users, and a further pass over the records counts
// the others.
//
// The sends of a message are kept, as the bitmaps of the records, until no release and no limit can look back to them.
package pressure
