// Package server answers the HTTP API.
//
// # Flow
//
//	request → router       check the key and its scope
//	        → receive      refuse by the header, read the body, inflate it
//	        → decode       parse the body strictly in one pass             wire
//	        → findUsers    evaluate the audience expression                wire
//	        → enter        reserve answer memory, users, rate              gate
//	        → Capper       apply segments, limits and the store            capping
//	        → Summarize    count the decisions                             wire
//	        → EncodeFilter append the answer, release the users            wire
//	        → Write        send the answer at the client's pace            gate
//
// A segment lookup follows the same path, but reads one generation of the segments instead of the policy and the
// store. A call for permits follows the path with the pacers instead of the Capper, and costs one user of the
// client's rate.
//
// # Packages
//
//	server       routes and the handler of each call; the only user of echo
//	server/wire  decodes requests and encodes answers and failures
//	server/gate  limits callers: keys, rates, budgets, connections, pace
//
// The types of requests, answers and errors belong to package client/api, which the Go client shares. A handler is a
// plain function of a call. Every refusal is a wire.Failure, whose code has one HTTP status (api.Code.Status). Any
// other error is internal: the server logs its text and hides it from the caller.
//
// # The hot path
//
// The server reads a body once into a pooled buffer and scans it once. The ids go straight into the slice that the
// store receives. One pass counts the decisions, and the encoder appends the answer to a pooled buffer, without a value
// per user. Decoder and encoder are written by hand. Tests compare decoder and encoder with the types of package api,
// and those types with the OpenAPI description.
//
// # Ids
//
// A server has one kind of ids (Config.IDs). Dense ids are users themselves. The decoder turns all other ids into
// images, which are the users of the Capper, and keeps the ids beside them for the answer, because an image does not
// lead back to its id. A call that takes only dense ids refuses other kinds by name. Log lines show images, not ids.
//
// # Guarantees
//
//   - Each user is in exactly one of allowed, denied and unavailable. Replayed users are a part of allowed.
//   - A call that reached the store continues when its caller disconnects. The store judges and records each user
//     atomically. A caller learns the result by repeating the call with the same message id (for permits: request id).
//   - Permits are an error when the store did not answer, and never a grant.
//   - Bounds limit the cost of a call before the cost arises: bytes of one body and of all bodies, users of one batch
//     and of all calls, bytes of all answers, connections, users per second of a client, time for the header and for
//     the store, and the minimum rate of a body and of an answer.
//   - Two expressions are evaluated at a time, each on all cores. Waiting clients take turns, and the deadline of a
//     call ends its wait.
//   - Clients share the budgets fairly: the client that holds most is refused first. Users are held until they are
//     decided, body memory until the body is decoded, and answer memory until the answer is written. A client that
//     stops sending or reading is disconnected when another client needs the memory.
//
// # Access
//
// Without API keys everybody may call, but then the service listens on loopback addresses only. With keys every call
// needs a key with the right scope, except health, readiness and the API's description. Operators have the admin
// listener. The console pages check the visitor's key through Inside, with its current scopes.
//
// A caller with a namespace sees only its own messages. A caller without a namespace sees all messages, each with its
// namespace, and selects another namespace by the parameter namespace. Questions about the past are answered
// from the audit.
//
// # Non-goals
//
// The API has no sessions, no cookies, no cross-origin calls from browsers and no streaming. A larger audience takes
// several calls with one message id; see package client.
package server
