// Package wire decodes the requests of the HTTP API and encodes its responses and failures.
//
// # Decoding
//
// The decoder parses a request body strictly in one pass. The decoder is written by hand, because common JSON decoders
// accept input that this API rejects: unknown and repeated fields, field names in other upper and lower case, null ids,
// and data after the object. Common decoders also need ten times as much time for each id. The decoder writes the ids
// directly into the slice that the store receives. The slice is not pooled, because a store may still read the slice
// after a call has timed out.
//
// The decoder validates every byte of a bitmap before it expands the first id. The validation takes time linear in the
// size of the bitmap. The validation in the roaring bitmap library takes quadratic time for a container of many runs.
//
// Ids that are not dense, and dense ids as JSON strings, are decoded differently. A Given keeps ids that are not dense,
// and dense ids as JSON strings, in one slice, packed or as text, in the order of the users. The encoder copies the ids
// from the slice of the Given. The decoder chooses between the two ways once for each list.
//
// # Encoding
//
// One pass counts the decisions. The encoder then appends the response to a buffer, without allocating a value for each
// user or permit. The encoder writes a bitmap one container at a time from users in ascending order. The encoder writes
// the slots of permits as durations from now.
//
// # Lookup
//
// A lookup reads one segments generation: its names, the members of a segment or set, the segments and sets of users,
// or the users of an audience expression. The call uses the current generation, or an earlier generation that is
// pinned. A call for a page of members or of an audience pins the generation, so that the call for the next page reads
// the same generation.
//
// Evaluating an audience expression uses all cores for some time, so Finder limits the number of concurrent
// evaluations. Waiting clients take turns, so that a client with many calls does not delay the calls of other clients.
// The wait for an evaluation ends at the deadline of the call.
//
// # Failures
//
// A Failure is an error that the caller receives: a code of package api, a sentence, and the field with the error. All
// other errors are internal: only the log contains their text.
package wire
