// Package segments is both sides of one format: publishing generations of
// segments, and answering which segment a user is in.
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
//
// A location is a directory or an S3 prefix; Source reads it, Store writes it
// too, and one acceptance suite holds both to the same contract. A generation's
// name begins with its time, so names sort by time, and ends with a hash of every
// field of the manifest; current.json repeats the SHA-256 of the whole manifest.
//
// # Guarantees
//
// Publishing: bitmaps first, the manifest next, current.json last, so a crash at
// any point leaves the live generation whole and the next run succeeds. Of two
// publishers that began from the same live generation one wins, the other gets
// ErrLostRace and has changed nothing. current.json is replaced by a conditional
// PUT (If-Match, If-None-Match), in a directory under a file lock. What is live
// already is not published again, and bitmaps that exist are not stored again; one
// that is not the live generation's, which has been read, is compared first.
// The same ids give the same bytes: Set.Bitmap picks the smallest container for
// every 65,536 ids, and the bytes are those of RunOptimize in the roaring
// libraries.
//
// Reading: no byte is believed. A manifest must be the very bytes that were
// published under its name: a segment's name, its place in the order, a reason or
// a space that has changed is damage. What a later tool adds comes with another
// format version. A bitmap's size, SHA-256, every container's
// order, bounds and count, the absence of bytes after the end, cardinality and
// lowest and highest id must all agree with the manifest, or the whole
// generation is refused. A Refresher swaps whole generations with one atomic
// pointer: a lookup works on one Snapshot and sees one generation. Any failure
// keeps the generation in use, shows in Status, metrics and the log, and is tried
// again. A checked copy is kept in a cache directory, so a service starts while
// its source is down, and says so. An unchanged generation costs one conditional
// GET. A file system that does not answer holds up neither a refresh, beyond its
// time-out, nor the end of Run: the call is left behind, at most one per path.
//
// # How bitmaps are checked
//
// parseContainers is a decoder of its own, strict and linear in the size of the
// bytes. It stands where the library's Validate would: that compares each run of
// a container with every other, which a crafted bitmap with 2,047 runs in each of
// its 65,536 containers turns into minutes. A fuzz test holds that whatever
// passes here is valid for the library and means the same set.
//
// # Snapshot: what a lookup costs
//
// Asking roaring bitmaps one after the other costs a binary search and a branch
// that cannot be predicted for every segment. A Snapshot instead holds one map
// from id to code, in chunks of 65,536 ids:
//
//   - A chunk of which all ids have the same code, or none has one, takes its 8
//     bytes in the table of chunks.
//   - A chunk with many users is bit-sliced: with n segments a code has k =
//     ceil(log2(n+1)) bits, and k words side by side hold the codes of 64
//     neighbouring ids. A lookup touches one cache line, seldom two. A chunk
//     takes k × 8 KiB, whoever is in it.
//   - A chunk with few users, up to 8,192 and when that is smaller, is 256 pages of
//     256 ids: where each page begins, then the low byte of the id and the code of
//     each user. It takes 514 bytes and 2 per user; a lookup looks at about 16.
//
// Building it takes all cores and one pass over the containers. The sizes, for 4
// segments: 270 million users that fill their id space, in segments at random,
// take 101 MB (the bitmaps 135 MB); in contiguous ranges 0.1 MB; scattered over all
// 32-bit ids 558 MB. The times, and roaring's Contains beside them, are measured
// by
//
//	go test -run '^$' -bench 'Lookup|Contains|Snapshot|Start' ./internal/segments/
//
// with FACTOR=10 for a tenth of the users; docs/segmentbuild.md has figures.
//
// # Files
//
// set, container, encode and bitmap are the codec; snapshot and chunk the map for
// lookups; manifest, document, load and cache the reading, refresher and metrics the
// keeping; store, directory (with hung) and s3 (alone with the AWS SDK) the places; publish,
// overlap, compare, guard, earlier and history what segmentbuild does with them. Package ingest
// reads raw ids, package build makes segments of them.
//
// # Not here
//
// 64-bit ids, updates of a segment in place, and encryption: a bucket has its own.
package segments
