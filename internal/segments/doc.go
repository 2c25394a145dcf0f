// Package segments is the format of generations of segments, and the side that
// reads it: it answers which segment a user is in. Package publish is the other side,
// package ingest reads raw ids, package build makes segments of them; bitmaps are
// package bitmap's, and the places where all this lies package objects'.
//
// # Vocabulary
//
// A segment is a named set of users; user ids are unsigned 32-bit integers. A
// generation is one published version of all segments, a manifest its index.
// Segments are in order of precedence: a user in two of them belongs to the
// earlier. The code of a segment is its index in the manifest plus 1; 0 is none.
//
// # Layout of a location
//
//	<prefix>/bitmaps/<sha256>.roaring       content-addressed, immutable; portable roaring format, 32-bit ids
//	<prefix>/generations/<generation>.json  a manifest, immutable
//	<prefix>/current.json                   which generation is live; replaced by compare-and-swap
//	<prefix>/checked.json                   when a build last published, or found its segments live already
//	<prefix>/controls.json                  what must not go live: a hold, what was rolled back from; likewise
//	<prefix>/gc.json                        whether a gc removes objects; replaced by compare-and-swap
//
// A generation's name begins with its time, so names sort by time, and ends with a
// hash of every field of the manifest; current.json repeats the SHA-256 of the whole
// manifest.
//
// # Reading
//
// No byte is believed. A manifest must be the very bytes that were
// published under its name: a segment's name, its place in the order, a reason or
// a space that has changed is damage. What a later tool adds comes with another
// format version. A bitmap's size, SHA-256, every container's
// order, bounds and count, the absence of bytes after the end, cardinality and
// lowest and highest id must all agree with the manifest, or the whole
// generation is refused. A Refresher swaps whole generations with one atomic
// pointer: a lookup works on one Snapshot and sees one generation. Any failure
// keeps the generation in use, shows in Status, metrics and the log, and is tried
// again. A checked copy is kept in a cache directory, so a service starts while
// its source is down, and says so. An unchanged generation costs two conditional
// GETs, of current.json and of checked.json, which says when a build last ran to its
// end, changed or not. A live generation that cannot be read is read again after one
// interval, two, four, up to 15 minutes, and at once when current.json moves. A file system that does not answer holds up neither a refresh, beyond its
// time-out, nor the end of Run: the call is left behind, at most one per path.
//
// # Snapshot
//
// A Snapshot is a generation laid out for lookups: a bitmap.CodeMap of its bitmaps,
// whose package says what it costs.
//
// # Files
//
// keys, manifest, pointer and checked are what is stored; load reads it, snapshot
// answers, refresher keeps (with spoiled, cache and metrics).
//
// # Not here
//
// Updates of a segment in place, and encryption: a bucket has its own.
package segments
