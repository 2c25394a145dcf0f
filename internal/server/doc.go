// Package server answers the HTTP API.
//
// # Flow
//
//	request → router: key and scope → readBody: refuse by the header, receive, inflate → decode → enter: answers' memory,
//	users in flight, client's rate → Capper → tally → append the answer → give the users back → write at the client's pace
//
// A handler is a plain function of a call; the router, and only it, knows
// echo. Every refusal is a failure, whose code has one status (statuses), and
// is written as {"error": {"code", "message", "field"}}. What is no failure is
// an internal error: its text goes to the log, not to the caller.
//
// # The hot path
//
// A body is read once into a pooled buffer and scanned once: the decoder is
// written by hand because the usual ones let through what this API refuses
// (unknown and repeated fields, other cases of names, null ids, data after the
// object) and cost ten times as much per id. Ids go straight into the slice
// that the store gets; that slice is not pooled, since a store may still read
// it when a call has timed out. Decisions are counted in one pass and the
// answer is appended to a pooled buffer, without a value per user. Bitmaps of
// answers are written container by container from the ascending users.
//
// A bitmap of a request is checked byte by byte before one id is expanded, in
// time linear in its size; the library's own check takes quadratic time on a
// container of many runs.
//
// # Guarantees
//
//   - A user is in exactly one of allowed, denied and unavailable; replayed is
//     a part of allowed.
//   - A call that reached the store goes on when its caller goes: each user is
//     judged and recorded atomically, and the caller learns the result by
//     asking again with the same message id.
//   - What a call may cost is bounded before it costs it: bytes of one body and
//     of all, users of one batch and of all, bytes of all answers, connections,
//     users per second of a client, time to send a header, to wait for the
//     store, and the rate of a body and of an answer.
//   - What all calls share is shared fairly (budget): who holds most is refused
//     before another is. Users are held while they are decided; memory of a
//     body while it comes and is decoded, by what has come; memory of an answer
//     until it is written. Who sends half and stops, or does not read, is cut
//     off when another needs the room.
//
// # Who may call
//
// Without keys everybody may, which Listen allows on loopback addresses only.
// With keys every call needs one of its scope, but health, readiness and the
// API's description. Admin serves operators on a listener of its own.
//
// # Non-goals
//
// No sessions, no cookies, no cross-origin calls from browsers, no streaming:
// a larger audience is several calls with one message id, see package client.
package server
