// Package messages counts for each message how many users were asked for, allowed, released and denied, by
// channel, limit and segment.
//
// The counts of sends are exact. A store counts a send in the atomic step that records or removes the send,
// so that a retry after a lost reply counts nothing twice.
//
// The counts of answers are approximate. Each instance counts the answers that it returned and writes the
// counts once a second, so that counting does not slow a call down. A user who is denied three times counts
// as three answers. An instance that is killed loses the answers of its last second.
//
// Activity is the sum of the answers to all calls of an hour, in parts of five minutes. A store keeps it as a message
// in a namespace of its own, so that all instances share it and a restart loses nothing.
//
// Counts are kept after the last call as long as the logs: at least a day and at most MaxKeep. Every message
// that the store remembers is counted (see capping.MessageMemory). A message of which all users were withheld
// reaches no filter call of the store; its answers begin the counts (see Delta.Begins). A send
// that was recorded before the store
// remembered its message is not counted, and its release is not counted either. Erasing a user changes no
// count, because the sends were made.
//
// A title is the name that people read for a message. A store keeps it beside the counts and as long as they are kept.
package messages
