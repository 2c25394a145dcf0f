// Package messages counts, for each message (campaign), for how many users callers requested decisions, and how many
// sends were allowed, released and denied. For each message, the counts are separate by channel, limit and segment.
//
// The counts of recorded and released sends are exact. A store counts a send in the same atomic step that records or
// removes the send. Because the store counts a send in the same atomic step, the send is not counted twice if a caller
// repeats a call whose reply was lost.
//
// The counts of decisions are approximate. Each instance counts the decisions that it returned, and writes these
// counts to the store once a second, so that counting does not delay calls. If a user is denied three times, the
// counts contain three decisions. If an instance is killed, the decision counts of its last second are lost.
//
// Activity is the number of decisions of all calls of an hour, in parts of five minutes. A store keeps the Activity as
// the counts of an artificial message in a separate namespace. Because the counts are in the store, all instances share
// the Activity, and a restart does not lose it.
//
// After the last call about a message, a store keeps the counts as long as it keeps recorded sends, but at least a day
// and at most MaxKeep. The store counts every message that it remembers (see capping.MessageMemory). If suppression,
// the holdout (control group) or quiet hours deny all users of a call, the store gets no filter call. If a call has
// only denials that need no store, its decisions begin the counts of the message (see Delta.Begins). If the store did
// not remember the message when it recorded a send, it counts neither the send nor the release of the send. If a user
// is erased, the counts do not change, because the sends to the user were made.
//
// A title is the name of a message that people see. A store keeps the title of a message as long as the counts of the
// message.
package messages
