// Package server answers the HTTP API.
//
// # Flow
//
//	request → router       key and scope                                  access, listen
//	        → bodies.Read  refuse by the header, receive, inflate         body
//	        → decode       one strict pass over the body                  decode
//	        → findUsers    of an audience, by its expression              lookup
//	        → enter        memory of the answer, users in flight, rate    admission, access
//	        → Capper       segments, limits, store                        package capping
//	        → Summarize    count the decisions                            answer
//	        → Filter       append the answer, free the users' part        answer
//	        → Write        at the client's pace                           admission
//
// A look-up goes the same way, with wire.MembershipOf in the place of Capper: it asks one
// generation, and neither policy nor store. Permits too: Read, Permits (decode), Enter, Pacers (package pacing)
// in the place of Capper, Permits (answer), Write. They cost nothing of a client's
// rate.
//
// # Rooms
//
// Each arrow of the flow has a package; they import downwards only:
//
//	server     routes, and the handler of each call; the only user of echo
//	metrics    counts calls, users and permits
//	answer     writes the answers of filter, release, look-ups and permits, and what is
//	           told of the policy and of users
//	lookup     asks one generation: names, members, who is in what, audiences
//	decode     reads requests
//	body       receives what they are read from
//	listen     opens listeners, TLS
//	admission  bounds what callers may hold: budgets, connections, pace
//	access     says who may call, and how fast
//	failure    what a caller is told that is refused
//
// The types of requests, answers and errors are package client/api's, which the
// Go client has too. A handler is a plain function of a call. Every refusal is
// a failure, whose code has one status (api.Code.Status). Any other error is
// internal: its text goes to the log, not to the caller.
//
// # The hot path
//
// A body is read once into a pooled buffer and scanned once; ids go straight
// into the slice that the store gets. Decisions are counted in one pass and the
// answer is appended to a pooled buffer, without a value per user. Both are
// written by hand; tests hold them to the types of package api, and those to
// the description.
//
// # Guarantees
//
//   - A user is in exactly one of allowed, denied and unavailable; replayed is
//     a part of allowed.
//   - A call that reached the store goes on when its caller goes: each user is
//     judged and recorded atomically, and the caller learns the result by
//     asking again with the same message id; of permits with the same request id.
//   - Permits that the store did not answer for are an error, never a grant.
//   - What a call may cost is bounded before it costs it: bytes of one body and
//     of all, users of one batch and of all, bytes of all answers, connections,
//     users per second of a client, time to send a header, to wait for the
//     store, and the rate of a body and of an answer.
//   - Expressions are worked out two at a time, each on all cores; who waits has a turn
//     by rotation between clients, and the call's deadline ends it.
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
// API's description. Admin serves operators on a listener of its own. Pages that the
// process serves beside the calls ask Inside, as the key that a visitor has
// shown, with its scopes as they are now.
//
// # Non-goals
//
// Of the API: no sessions, no cookies, no cross-origin calls from browsers, no streaming:
// a larger audience is several calls with one message id, see package client.
//
// # Body
//
// Package body receives the bodies of requests: refused by the header where that
// can be, read once into a pooled buffer at the sender's pace, and inflated when
// all of it is there. What a body holds of the budget of bodies grows with what
// has come.
//
// # Messages
//
// Package messages answers what is asked about messages: what became of each, by
// channel, and to give back all sends of one.
//
// A caller with a namespace sees its own messages only, whatever it asks for. One
// without sees all of them, each with its namespace, and names the messages of another
// one by the parameter namespace.
//
// # Past
//
// Package past answers from the audit: what was decided of a user, and what became of the
// users of a message. It reads records as package archive gives them, and holds no more of
// them than the answer does.
package server
