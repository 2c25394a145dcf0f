// Package server serves the HTTP API of capper, a service that limits how many messages a person receives.
//
// # Flow
//
//	request → router       check the key and its scope
//	        → receive      refuse by the header, read the body, inflate it
//	        → decode       parse the body strictly in one pass             wire
//	        → findUsers    evaluate the audience expression                wire
//	        → enter        reserve response memory, users, rate            gate
//	        → Capper       apply segments, limits and the store            capping
//	        → Summarize    count the decisions                             wire
//	        → EncodeFilter append the response, release the users          wire
//	        → Write        send the response at the client's pace          gate
//
// The server processes a segment lookup (request for the segments of users) in the steps of a filter call. Instead of
// the policy and the store, a lookup reads only one segments generation (published version of the segments). The server
// processes a permit request (for permissions to start sends) in the same steps, but asks the pacers (rate limiters)
// instead of the Capper. In the client's rate limit, a permit request costs as much as a call with one user.
//
// # Packages
//
//	server       routes and the handler of each call; the only user of echo
//	server/wire  decodes requests and encodes responses and failures
//	server/gate  limits callers: keys, rates, budgets, connections, pace
//
// The types of requests, responses and errors belong to package client/api, which the Go client imports too. The
// handler of an API call is a plain function, which reports every refused call as a wire.Failure. The code of a
// wire.Failure determines the HTTP status of the response (api.Code.Status). All other errors of a call are internal:
// the server logs the error text and hides it from the caller.
//
// # The hot path
//
// The server reads a request body once into a pooled buffer and scans the buffer once. The decoder writes the user ids
// of the request directly into the slice that the store receives. The server counts the decisions in one pass. The
// encoder appends the response to a pooled buffer, without allocating a value for each user. The decoder and the
// encoder for the most frequent calls are written by hand. Tests compare the decoder and the encoder with the types of
// package api, and compare these types with the OpenAPI description.
//
// # Ids
//
// A server accepts one kind of user ids (Config.IDs). A dense id is a 32-bit number, and capper uses the number itself
// for the user. The decoder converts every other id to an id image (64-bit keyed hash of an id), and the Capper decides
// about id images. An id image cannot be converted back to its id, so the decoder keeps the original ids in memory for
// the response. If a call supports only dense ids, but the server has another kind of ids, the call returns an error
// that names this kind. The log lines of the server contain id images (64-bit keyed hashes of ids) instead of ids.
//
// # Guarantees
//
//   - A filter response lists each user in exactly one of the lists "allowed", "denied" and "unavailable". Users whose
//     send an earlier call recorded (replayed) are also in the list of allowed users.
//   - When a caller disconnects, the store finishes what it has started for the call, and begins nothing more. If the
//     caller of a permit request disconnects, the server completes the request. For each user, the store makes the
//     decision and records the send in one atomic step. A caller that got no response repeats the call with the same
//     message id (for permits: request id), and gets the result.
//   - If the store does not respond to a permit request, the server returns an error and grants no permits.
//   - The server limits these resources before a call uses them: bytes of one body and of all bodies, users of one
//     batch and of all calls, bytes of all responses, connections, users per second of a client, time for the request
//     header and for the store, and the minimum rate of reading and writing.
//   - The server evaluates at most two audience expressions at the same time, each on all cores. Clients that wait for
//     an evaluation take turns. A call waits for the evaluation of its expression until the deadline of the call.
//   - Clients share the budgets fairly: when a budget is exhausted, the server first refuses the client that holds most
//     of the budget. A call occupies the budget for users until the service has decided about the users. The memory for
//     a request body is occupied until the body is decoded, and the memory for a response until the response is
//     written. When another client needs the memory, the server disconnects a client that has stopped sending or
//     reading.
//
// # Access
//
// If no API keys are configured, everybody may call the API, but the service listens on loopback addresses only. If API
// keys are configured, every call except /healthz, /readyz and /openapi.yaml needs a key with the right scope.
// Operators can configure a separate listener for admin calls. Pages of the console make API calls through the handler
// Inside, which checks the current scopes of the visitor's key.
//
// A caller whose API key has a namespace sees only the messages of this namespace. A caller whose key has no namespace
// sees all messages with their namespaces, and can select one namespace by the query parameter namespace. The server
// reads past decisions from the audit (record of all decisions).
//
// # Non-goals
//
// The API has no sessions, no cookies, no cross-origin calls from browsers and no streaming. Callers split an audience
// that is too large for one call into several calls with the same message id; see package client.
package server
