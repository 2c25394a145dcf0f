// Package client is the Go client of the HTTP API of capper, a service that limits the number of messages that a person
// receives.
//
// # The rule for callers
//
// A caller must send only to the users in the result's field Allowed. The caller must retry the users in the field
// Unavailable with the same message id. The method Filter retries unavailable users, up to Config.Attempts times. The
// result of Filter holds the users who are still unavailable. After an error of Filter, nobody may receive the message,
// because the service has returned no decision.
//
// # Ids
//
// The field Users of a request holds dense ids, which are numbers below 2^32. If the user ids of a deployment are
// UUIDs, 64-bit numbers or texts, a request needs the field IDs instead. UUIDs and 64-bit numbers may also be in the
// field Packed. For a request with Packed, the response has bitmaps of positions in Packed. ExplainID, EraseID and
// SetChange.AddIDs also take UUIDs, 64-bit numbers and texts. Client.IDs returns the kind of ids of a deployment.
//
// # Retries
//
// A caller may repeat every API call. The service recognises a repeated send by its message id, its channel and the
// namespace of the API key. A repeated release or erasure has no further effect. Because repeated calls are harmless,
// the client retries after connection errors and after the HTTP statuses 408, 500, 502, 503 and 504. After a status
// 429 (rate limit), the client waits at least for the time that the response names. The client stops retrying a call
// when the context ends or after Config.Attempts attempts. The client does not retry after an *Error with another
// status, because the service would reject the call again.
//
// # Traces and request ids
//
// Config.Header adds headers from the context to each request, such as traceparent and tracestate of OpenTelemetry's
// SDK:
//
//	Header: func(ctx context.Context, header http.Header) {
//		otel.GetTextMapPropagator().Inject(ctx, propagation.HeaderCarrier(header))
//	}
//
// With Error.RequestID, the operators of the service can find the failed call in their log.
//
// # Large audiences
//
// FilterAll and ReleaseAll split an audience of any size into batches and send the batches in parallel calls. A
// caller may start an interrupted call of FilterAll or ReleaseAll again with the same message id. The repeated call
// returns the decisions of the interrupted call, and Replayed lists the users whom the interrupted call already
// allowed.
//
// The service evaluates the expression of an Audience, so the client need not download the users and send them back to
// the service. The client requests all parts of an audience from one generation of the segments (published version).
// Because all parts come from one generation, the parts stay the same if a new generation is published in the meantime.
// The decisions about the users of each part of an audience use the current segments generation. If FilterAll ends
// early for an audience, it returns an *AudienceError. To continue an interrupted call of FilterAll, the caller passes
// AudienceError.Generation to a new call. If the service no longer has the generation (CodeGone), the caller repeats
// FilterAll without a generation. If both calls contain the same send, the limits count the send only once. If some
// users of an audience are unavailable, the client repeats the call with their ids or with a bitmap. Campaign engines
// that keep a queue of parts can call the two steps of FilterAll: Parts and FilterParts. To count an audience, a caller
// needs an API key with the scopes filter and read.
//
// # Sets
//
// ChangeSet adds users to a set, for example a person who unsubscribes, and removes users from it. After ChangeSet
// returns, all later decisions of all instances use an addition. On instances that did not receive the call, a removal
// takes effect within about a second. Sets and SetMembers list the changes that API calls made to sets.
//
// # Messages
//
// The methods Messages and Message return the numbers of allowed, denied and released sends of a message (campaign).
// Allowed and Released are exact numbers of sends; all other numbers count results of calls, including repeated calls.
// ReleaseMessage releases all recorded sends of a cancelled message; the caller need not know the audience.
//
// # Pacing
//
// A Pacer lets its callers start sends no faster than the pacers of the service (rate limiters) allow for all senders
// together. All callers of a Pacer share one stock of permits, each of which allows one send. The Pacer requests
// permits from the service in batches: permits for waiting callers, and permits that callers will probably use within
// the time PacerConfig.Ahead. A Pacer makes only one request for permits at a time. A caller uses a permit at its slot
// (start time) or later. The wait for the slot counts from the arrival of the response. The Pacer discards an unused
// permit one second after its slot (start time). If the shortest window of the pacer's limits is below one second, the
// Pacer discards an unused permit after this window. The method Close gives unused permits back, so that other senders
// can use them. Permits whose slots are more than 6 s in the future have a lease, which the Pacer extends. If the
// sender dies, the lease ends, and the service takes the permits of the lease back.
//
// A pacer limits the slots (start times) of sends, not their arrival at a message provider. For example, if the network
// delay to the provider becomes 10 ms shorter, two sends can arrive 10 ms closer together than their slots.
//
// The method Permits requests permits in one API call, for callers that space their sends themselves.
package client
