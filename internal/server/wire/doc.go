// Package wire decodes the requests of the HTTP API and encodes its answers and failures.
//
// # Decoding
//
// The decoder parses a body strictly in one pass. It is written by hand, because the usual decoders accept input that
// this API rejects: unknown and repeated fields, other cases of names, null ids and data after the object. They also
// cost ten times as much per id. The ids go straight into the slice that the store receives. The slice is not pooled,
// since a store may still read it after a call has timed out.
//
// The decoder checks every byte of a bitmap before it expands the first id, in time linear in the size. The library's
// own check takes quadratic time on a container of many runs.
//
// Ids that are not dense, and dense ids as strings, take another path: Given keeps their packed or text form in one
// slice, in the order of the users, and the encoder writes them from there. The path is chosen once for each list.
//
// # Encoding
//
// One pass counts the decisions, and the encoder appends the answer to a buffer, without a value per user or permit.
// Bitmaps are written container by container from the ascending users. Runs of permits are written as waits from now.
//
// # Lookup
//
// A lookup reads one generation of the segments: its names, the members of a segment or set, the segments and sets of
// users, or the users of an audience. The generation is the current one, or an earlier one that is pinned. Pages of
// members and audiences pin their generation, so that the next page reads the same one.
//
// Evaluating an audience takes all cores for a while, so the number of concurrent evaluations is limited. Waiting
// holders take turns, so that a holder with many calls does not delay the others. The deadline of a call ends its
// wait.
//
// # Failures
//
// A Failure is the error that a caller receives: a code of package api, a sentence and the field at fault. Any other
// error is internal; only the log shows its text.
package wire
