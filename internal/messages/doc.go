// Package campaign counts what became of each message: how many were asked for,
// allowed, released and denied, by channel, limit and segment.
//
// Two kinds of counts stand beside each other. Sends are exact: a store counts them in
// the same atomic step in which it records or removes them, so a call that is repeated
// after a lost answer counts nothing twice. Answers are what callers were told, counted
// by the instance that told them and written once a second together, so they cost a call
// nothing: a user who is denied three times is three answers, and an instance that is
// killed forgets its last second of them.
//
// Counts are kept as long as the logs after the last call, a day at least and MaxKeep at
// most. Counted is every message that the store remembers (capping.MessageMemory). A
// send that was recorded before its message was counted is in no count, and neither is
// its release. Erasing a user changes no count: the sends were made.
package messages
