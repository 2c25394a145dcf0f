// Package campaigns keeps what was sent of each message in the embedded database:
// sends in the same batch as the logs that they are in, and answers.
//
//	Filter, Release
//	   │  Begin, Counted: is the message counted?           record.go
//	   ▼
//	each portion, under its locks: Count adds what the portion recorded or gave
//	back to the portion's batch                             sends.go
//
// # Data layout
//
//	00 FF 01 token (6) channel (1)                       record: version (1), JSON: the message, its life, answers,
//	                                                     first and last call
//	00 FF 02 token (6) channel (1) life (8) stripe (1)   sends: version (1), recorded (8), released (8)
//	00 FF 03 minute (5) token (6) channel (1)            list: nothing; the minute is that of the record's last call
//
// Sends are counted in up to 256 values, one for each stripe of users, which the
// stripe's lock protects: portions of a call that are done side by side do not wait
// for each other, and a count costs a portion one value in its batch. A stripe remembers
// the values that it wrote last, so that writing one reads nothing. The sends of a
// campaign are the sum.
//
// A life is when the record was begun: counts that were removed begin at 0, whatever a
// stripe still remembers.
//
// Programs from before there were counts look at none of these keys and leave them
// as they are; what they record and release is not counted.
//
// # What cannot be read
//
// A count that cannot be read is never in the way of a decision: nothing is added to it any
// more, and it is an error of who asks for it. It is logged once.
//
// # What is removed, and when
//
// The list is in the order of the last calls. A sweep begins at the oldest one and removes,
// with all that belongs to it, what was not called for as long as counts are kept.
package campaigns
