// Package wire decodes the requests of the HTTP API and encodes its responses and failures.
//
// # Decoding
//
// The decoder of package wire parses a request body strictly in one pass. The decoder is written by hand, because
// common JSON decoders accept input that this API rejects, and need ten times as much time for each id. For example,
// common JSON decoders accept unknown and repeated fields, field names with other capital letters, null ids, and data
// after the object. The decoder writes the ids directly into the slice that the store receives. The slice of user ids
// is not pooled, because a store may still read the slice after a call has timed out.
//
// The decoder validates every byte of a bitmap before it expands the first id. The validation time is linear in the
// size of the bitmap. For a bitmap container with many runs, the roaring bitmap library would need quadratic time.
//
// The decoder converts dense ids (32-bit numbers) in JSON numbers directly to the numbers of users. If ids are not
// dense, or if dense ids are JSON strings, the decoder also keeps the original ids in a Given. A Given keeps the ids in
// one slice, packed or as text, in the order of the users. The encoder copies the original ids from the Given (the ids
// that the request contained) into the response. The decoder decides for a whole list of ids whether a Given is
// necessary, not for each id.
//
// # Encoding
//
// Package wire counts the decisions in one pass. The encoder appends the response to a buffer, without allocating a
// value for each user or permit. The encoder of responses writes a roaring bitmap one container at a time, from users
// in ascending order. The encoder of responses writes the slots (start times) of permits as durations from now.
//
// # Lookup
//
// A lookup call reads one segments generation (published version of the segments). The response to a lookup contains
// names of segments, members of a segment or set, segments and sets of users, or users of an audience expression. A
// lookup call uses the current segments generation, or an earlier generation that is still in memory. After a call for
// a page of members or of an audience, the server keeps the segments generation in memory for the next page.
//
// Evaluating an audience expression uses all cores for some time, so Finder limits the number of concurrent
// evaluations. Clients take turns, so that a client with many calls does not delay the calls of other clients. A call
// waits for its evaluation at most until the deadline of the call.
//
// # Failures
//
// A Failure is an error that the caller of the API receives: a code of package api, a sentence, and the field with
// the error. All errors other than a Failure are internal: only the log contains their text.
package wire
