// Package client calls the capper API.
//
// # The rule for callers
//
// Send only to the users in Allowed. Retry the users in Unavailable with the same message id. Filter retries a few
// times by itself; the result holds the users who are still unavailable then. An error means that the call had no
// answer, so nobody may receive the message.
//
// # Ids
//
// Users holds dense ids, which are numbers below 2^32. A deployment with UUIDs, 64-bit numbers or texts takes IDs, and
// UUIDs and 64-bit numbers also Packed, whose answers are bitmaps of positions. ExplainID, EraseID and SetChange.AddIDs
// take such ids too. IDs returns the kind of a deployment.
//
// # Retries
//
// Every call of the API may be repeated. The service recognises a send by its message id, its channel and the namespace
// of the key. A repeated release or erasure has no further effect. The client therefore retries connection errors and
// the statuses 408, 500, 502, 503 and 504. After a 429 it waits for the time in the answer. The retries stop when the
// context ends or after Config.Attempts. An *Error with another status is a refusal, which a retry would not change.
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
// An Error has the RequestID, by which the service's operators find the call in their log.
//
// # Large audiences
//
// FilterAll and ReleaseAll split an audience of any size into batches and send them in parallel. An interrupted run can
// be started again with the same message id. The result is the same, and users whom the earlier run was granted are in
// Replayed.
//
// An Audience is an expression that the service evaluates, so nobody exports users and posts them back. The client asks
// for an audience in parts of one generation, so that a publication during the run changes no part. Decisions use the
// current generation. A run that ended early returns an *AudienceError. It can be continued with the Generation in the
// error. If that generation no longer exists (CodeGone), start a new run without a generation. No user counts twice in
// either case. The client retries the unavailable users of a part as a bitmap. Parts and FilterParts are the two halves
// of FilterAll, for engines with a queue of parts. Counting needs a key with the scopes filter and read.
//
// # Sets
//
// ChangeSet adds users to a set and removes users from it, such as a person who unsubscribes. The change counts before
// ChangeSet returns. Sets and SetMembers list the changes.
//
// # Messages
//
// Messages and Message return the results of messages: Allowed and Released count sends exactly, and all other numbers
// count answers. ReleaseMessage removes all sends of a cancelled message, and does not need its audience.
//
// # Pacing
//
// A Pacer starts sends no faster than the service's pacers allow for all senders together. Its callers share one stock
// of permits. The Pacer requests permits in batches: permits for waiting callers, and permits for the time
// PacerConfig.Ahead. Only one call runs at a time. A permit is used at its slot or later, counted from the arrival of
// its answer. The Pacer discards a permit whose slot is older than the shortest window of the pacer's limits or one
// second. Close gives back the permits that were requested ahead, so that other senders get them. Permits that wait
// longer than 6 s have a lease, so the service gives them back when the sender dies.
//
// Windows hold for slots. If the delay to a provider becomes shorter, sends arrive closer together by the difference.
//
// Permits requests permits in one call, for callers who keep the pace themselves.
package client
