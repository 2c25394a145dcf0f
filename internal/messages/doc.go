// Package messages counts the requested decisions and the allowed, released and denied sends of each message
// (campaign). For each message, the counts are separate by channel, limit and segment.
//
// The counts of recorded and released sends are exact. A store counts a send in the same atomic step that records or
// removes the send. The store therefore counts the send only once if a caller repeats a call whose response was lost.
//
// The counts of decisions are approximate. Each instance counts the decisions that it returned, and writes these
// counts to the store once a second, so that counting does not delay calls. If a user is denied three times, the
// counts contain three decisions. If an instance is killed, the decision counts of its last second are lost.
//
// Activity is the number of decisions in all calls of an hour, counted separately for each five minutes. A store keeps
// the activity of each hour as the counts of an artificial message in a separate namespace. All instances share the
// activity in the store, and a restart does not lose the activity.
//
// A store keeps the counts of a message for at least MinKeep and at most MaxKeep after the last call about the message.
// Between MinKeep and MaxKeep, a store keeps the counts of a message for the same time as recorded sends (see KeepFor).
// The store counts every message that it remembers (see capping.MessageMemory). If suppression, the holdout (control
// group) or quiet hours deny all users of a call, the store gets no filter call. The decisions of a call that never
// reached the store as a filter call can therefore also begin the counts of a message (see Delta.Begins). If the store
// did not remember the message when it recorded a send, the store counts neither the send nor its release. The erasure
// of a user does not change the counts, because the sends to the user took place.
//
// A title is the name of a message that people see. A store keeps the title of a message as long as the counts of the
// message.
package messages
