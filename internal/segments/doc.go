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
//	<prefix>/gc.json                        whether a gc removes objects; replaced by compare-and-swap
//	<prefix>/checked.json                   when a build last published, or found its segments live already
//	<prefix>/controls.json                  what must not go live: a hold, what was rolled back from; likewise
//	<prefix>/gc.json                        whether a gc removes objects; replaced by compare-and-swap
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
// objects.ErrLostRace and has changed nothing. current.json is replaced by a conditional
// PUT (If-Match, If-None-Match), in a directory under a file lock. What is live
// already is not published again, and bitmaps of the live generation, which have been
// read, are not stored again; others that exist are, which makes them whole and young.
// The same ids give the same bytes: Set.Bitmap picks the smallest container for
// every 65,536 ids, and the bytes are those of RunOptimize in the roaring
// libraries.
//
// Collecting: gc never takes anything of what is live or becomes it, whoever
// publishes, rolls back, stops or is killed beside it. It holds a lease (gc.json),
// gives current.json other bytes that say the same (the fence), looks at what is
// there, and removes manifests first, then bitmaps that no other manifest names;
// before each it looks whether current.json is still as it left it, and stops if
// not. Whoever makes a generation live (1) reads current.json, (2) waits until
// nobody holds the lease, moving current.json so that a holder stops, (3) stores
// every object or looks that it is there, (4) replaces current.json if it still
// has the tag of (1); where only a fence has moved it, all again from (1). Take
// such a swap and any gc. If the fence came after the swap, gc sees the new
// generation as live and keeps it. If it came before (1), the lease, which is
// older, was seen in (2), so that every removal was over before (3). Between (1)
// and (4) it cannot have come: each writing of current.json has bytes of its own,
// and the swap would have failed. Nothing of this needs two clocks to agree or an
// object to be young. A holder that was killed is one whose lease has not changed
// for as long as it says, by the watch of who waits; the holder itself uses only
// half of that after each renewal, so what is left to trust is that a request is
// not carried out later than the other half after its sender gave it up. A gc of
// an older tool knows no lease: against that, objects are made young before the
// swap, and looked for once more after it.
//
// Withdrawing: what was rolled back from does not go live again unasked, whatever
// its new generation would be called: controls.json keeps a hash of the names, the
// order and the users of its segments, and one of the name and the users of each
// that was not the same in what went live instead. What differs in every segment
// passes. A hold there stops all publishing. It is a
// document beside current.json, whose readers take no key that they do not know.
// A rollback writes it before it replaces current.json, a hold moves current.json
// after it has written it, and a publisher reads it after the tag of current.json
// that it must find again at its swap: so none goes live on what it said before.
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
// its source is down, and says so. An unchanged generation costs two conditional
// GETs, of current.json and of checked.json, which says when a build last ran to its
// end, changed or not. A live generation that cannot be read is read again after one
// interval, two, four, up to 15 minutes, and at once when current.json moves. A file system that does not answer holds up neither a refresh, beyond its
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
// upload, collect, lease, controls, checked, overlap, compare, guard, earlier and history what segmentbuild does with them. Package ingest
// reads raw ids, package build makes segments of them.
//
// # Not here
//
// 64-bit ids, updates of a segment in place, and encryption: a bucket has its own.
package segments
