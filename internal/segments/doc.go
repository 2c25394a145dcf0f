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
// earlier. The code of a segment is its index in the manifest plus 1; 0 is none. A set
// is a named set of users beside the segments: sets may overlap, and decide nothing by
// themselves. The set tz/NAME holds the users in a time zone of the IANA database; who
// is in several is in the earlier of the manifest.
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
// manifest. A manifest with sets has format 2, one without is as it was before there were
// sets, format 1: programs from then refuse the former and stay on what they have. A
// manifest with acceptances has format 3. Names
// of sets are in manifests only; files are called by what is in them.
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
// interval, two, four, up to 15 minutes, and at once when current.json moves. A file system that does not answer holds
// up neither a refresh, beyond its time-out, nor the end of Run: the call is left behind, at most one per path.
//
// RefresherConfig.Require refuses generations by their manifests, before bitmaps are
// read, such as one without a set that the policy needs. At the start the cache's is
// taken rather than one that is refused, and one that is refused rather than none:
// Status then says so, and whoever serves has to ask. What is refused is looked at again
// with every interval.
//
// RefresherConfig.Guarded refuses generations that users left, by comparison with the one in
// use. At a start that is the cached one, else the newest earlier one of the source that can
// be read and was not rolled back from; it comes into use where the live one is refused.
// Earlier is what has an earlier name than the live one: after current.json went back, what
// is newer says nothing about it. Of the earlier one only guarded sets that differ are read.
//
// While a generation is in use, the next is read and laid out on half of the cores, and
// hashed in pieces, so that calls do not wait behind it. What it has in common with those
// in memory, by SHA-256, is neither read again nor held twice: each set, the map of the
// segments when all of them are as they were, the map of the zones likewise.
//
// # Snapshot
//
// A Snapshot is a generation laid out for lookups: a bitmap.CodeMap of its segments, the
// bitmaps of its sets as they are stored, and a CodeMap of the sets of time zones, as a
// user is asked for his one zone and not for 38 sets; the package bitmap says what each costs.
//
// # Pinned generations
//
// Work that spans many calls pins its generation. An earlier one is kept for
// RefresherConfig.Keep after it was last pinned, at most MaxPinned of them (the one that
// was pinned longest ago goes first). Pins are those of one process: another instance, or
// this one after a restart, has others. So that calls of one piece of work may come to
// several instances, which swap at different moments, one that nobody pinned is kept for a
// short grace after the swap, and one that is later than all that were in use is a
// NotYetError and has the source looked at. What is gone is a GoneError.
//
// # Files
//
// keys, manifest, pointer and checked are what is stored; load reads it, snapshot and
// zones answer, refresher keeps (with spoiled, status, cache and metrics), guarded, held and
// former compare, pins keeps what is earlier.
//
// # Not here
//
// Updates of a segment in place, and encryption: a bucket has its own.
package segments
