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
// A segment lookup goes through the steps of a filter call, but reads one generation of the segments instead of the
// policy and the store. A call for permits goes through the steps of a filter call, but asks the pacers instead of the
// Capper. The server charges a call for permits to the client's rate limit like a call with one user.
//
// # Packages
//
//	server       routes and the handler of each call; the only user of echo
//	server/wire  decodes requests and encodes answers and failures
//	server/gate  limits callers: keys, rates, budgets, connections, pace
//
// The types of requests, responses and errors belong to package client/api, which the Go client imports too. The
// handler of an API call is a plain function. The handler reports every refused call as a wire.Failure. The code of a
// wire.Failure determines the HTTP status of the response (api.Code.Status). All other errors of a call are internal:
// the server logs the error text and hides it from the caller.
//
// # The hot path
//
// The server reads a request body once into a pooled buffer and scans the buffer once. The decoder writes the user
// ids of the request directly into the slice that the store receives. One pass counts the decisions. The encoder
// appends the response to a pooled buffer, without allocating a value for each user. The decoder and the encoder for
// the most frequent calls are written by hand. Tests compare the decoder and the encoder with the types of package
// api, and compare these types with the OpenAPI description.
//
// # Ids
//
// A server accepts one kind of user ids (Config.IDs). A dense id is a 32-bit number, and capper uses the number
// itself for the user. The decoder converts every other id to an id image (64-bit keyed hash of an id), and the
// Capper decides about id images. An id image cannot be converted back to its id, so the decoder keeps the original
// ids in memory for the response. If a call supports only dense ids, it returns an error that names the unsupported
// kind of ids. The log lines of the server contain id images (64-bit keyed hashes of ids) instead of ids.
//
// # Guarantees
//
//   - A filter response lists each user in exactly one of allowed, denied and unavailable. Replayed users are also in
//     allowed.
//   - When a caller disconnects after the store call began, the store call continues. The store decides and records
//     each user atomically. A caller that got no response repeats the call with the same message id (for permits:
//     request id), and gets the result.
//   - If the store does not answer while the server processes a call for permits, the server returns an error and
//     grants no permits.
//   - Bounds limit the resources of a call before the call uses them: bytes of one body and of all bodies, users of one
//     batch and of all calls, bytes of all responses, connections, users per second of a client, time for the request
//     header and for the store, and the minimum rate of reading and writing.
//   - The server evaluates at most two audience expressions at the same time, each on all cores. Clients that wait for
//     an evaluation take turns. A call waits for its evaluation until the deadline of the call.
//   - Clients share the budgets fairly: when a budget is exhausted, the server first refuses the client that holds most
//     of the budget. A call occupies the budget for users until they are decided. A call occupies the memory for its
//     body until the body is decoded, and for its response until the response is written. The server disconnects a
//     client that stops sending or reading, when another client needs the memory.
//
// # Access
//
// If no API keys are configured, everybody may call, but the service listens on loopback addresses only. If API keys
// are configured, every call except /healthz, /readyz and /openapi.yaml needs a key with the right scope. Operators
// can configure a separate listener for admin calls. Pages of the console make API calls through the handler Inside,
// which checks the current scopes of the visitor's key.
//
// A caller whose API key has a namespace sees only the messages of this namespace. A caller whose key has no namespace
// sees all messages with their namespaces, and can select one namespace by the query parameter namespace. The server
// reads past decisions from the audit.
//
// # Non-goals
//
// The API has no sessions, no cookies, no cross-origin calls from browsers and no streaming. Callers split an audience
// that is too large for one call into several calls with the same message id; see package client.
package server
