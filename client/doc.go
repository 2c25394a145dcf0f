// Package client calls the capper API.
//
// # The rule
//
// Send only to the users of Allowed, and retry the users of Unavailable with
// the same message id. Filter asks again by itself a few times; what is still
// unavailable then is in the result. An error means that the call had no
// answer, so nobody may be sent to.
//
// # Retries
//
// Every call of the API may be repeated: a send is recognised by its message
// id and channel (and the namespace of the key), releasing and erasing twice is once. So the client repeats what failed
// on the way (connection errors, 408, 500, 502, 503, 504), and waits where it is told to
// (429), until the context ends or Config.Attempts are used up. Refusals
// (*Error with another status) are not repeated: they would be refused again.
//
// # Traces and request ids
//
// Config.Header gives each request what the context knows of its caller: with OpenTelemetry's
// SDK, traceparent and tracestate.
//
//	Header: func(ctx context.Context, header http.Header) {
//		otel.GetTextMapPropagator().Inject(ctx, propagation.HeaderCarrier(header))
//	}
//
// An Error has the RequestID by which the service's operators find the call in their log.
//
// # Large audiences
//
// FilterAll and ReleaseAll split an audience of any size into batches that are
// called in parallel. Interrupted and started again with the same message id
// they end with the same result: whom an earlier call or run had granted is in Replayed.
//
// An Audience is an expression that the service works out: nothing is exported and posted back.
// It is asked for in parts, all of the generation that was counted first, so that what is
// published meanwhile changes none of them; decisions are by the generation in use. A run that
// ended early is an *AudienceError: it goes on with the Generation named there, or, where that
// is gone (CodeGone), begins anew without one, and counts nobody twice either way. Users of a part
// who are unavailable are asked for again as a bitmap. Parts and FilterParts are the halves of
// FilterAll, for engines that keep a queue of parts. Counting needs a key of the scope read beside
// filter.
//
// # Messages
//
// Messages and Message tell what became of what was sent: Allowed and Released count sends
// exactly, all else counts answers. ReleaseMessage gives back all sends of a message that was
// called off, without its audience.
//
// # Pacing
//
// A Pacer lets sends start no faster than the service's pacers allow, whoever else
// sends. Its callers share one stock of permits, which are asked for in batches: what
// those who wait lack, and about as much ahead as is used in PacerConfig.Ahead. One call
// is under way at a time. A permit is used at its slot or later, counted from the
// arrival of its answer, and never when its slot is older than a window of the
// pacer's limits, or than a second: then it is thrown away. So what is lost when a
// sender stops is what was asked for ahead, and for callers that gave up. Windows
// hold for slots: to a provider that is reached late by more and then by less, sends
// come closer together by the difference.
//
// Permits takes permits in one call, for those who keep the pace themselves.
package client
