// Package segments defines the stored format of generations of segments, and reads generations. Package segments
// returns the segment, the sets and the time zone of a user. Package publish writes generations, package ingest builds
// generations from raw ids, package bitmap stores sets of ids, and package objects accesses the directory or bucket.
//
// # Vocabulary
//
// A segment is a named set of users, whose numbers are unsigned 32-bit integers; see Ids. A generation is one published
// version of all segments and sets, and a manifest is the index of a generation. Segments have an order of precedence:
// a user in the bitmaps of two segments belongs to the earlier segment. The code of a segment is its index in the
// manifest plus 1; code 0 means no segment. A set is a named set of users that is not a segment. Sets may overlap and
// have no precedence. The set tz/NAME holds the users in a time zone of the IANA database. A user in several time zone
// sets belongs to the earliest of these sets in the manifest.
//
// # Ids
//
// A location has one kind of ids (package ids). The number of a dense id is the id itself. A location with another kind
// of ids has an object ids.json with the kind and the key of the ids. If ids are not dense, each generation has a
// dictionary (package dictionary) of the images of all ids. The number of a user is the rank of the image in the
// dictionary, and is valid in this generation alone. To compare the users of two generations, use Renumbering. A
// generation may also have a Back, which converts numbers to ids.
//
// The manifest names the kind of the ids and the checksum of their key. A reader rejects a generation if ids.json is
// missing, or has another kind or key than the manifest. A Refresher also rejects a generation whose kind or key of ids
// differs from the generation in use.
//
// # Layout of a location
//
//	<prefix>/bitmaps/<sha256>.roaring       a bitmap in the portable roaring format; immutable, named by its hash
//	<prefix>/generations/<generation>.json  a manifest; immutable
//	<prefix>/ids.json                       the kind and the key of ids that are not dense; written once
//	<prefix>/dictionaries/<sha256>.…        dictionaries and BackFiles of such ids; immutable, named by their hashes
//	<prefix>/current.json                   the name of the live generation; replaced by compare-and-swap
//	<prefix>/checked.json                   the time of the last complete build, with or without changes
//	<prefix>/controls.json                  holds and rolled-back content; replaced by compare-and-swap
//	<prefix>/gc.json                        the lease of a running gc; replaced by compare-and-swap
//
// The name of a generation begins with its creation time, so names sort by time, and ends with a hash of every field of
// the manifest. The pointer current.json repeats the SHA-256 of the manifest. The format version of a manifest is 1
// without sets, 2 with sets, 3 with acceptances, 4 with the as_of of a set, and 5 with ids that are not dense. An older
// program rejects a manifest with a format version that it does not support, and keeps the generation that it has.
// Names of sets appear only in manifests.
//
// The as_of of a set is the time up to which the set's users contain every change by API calls. Snapshot.AsOf returns
// the as_of of a set.
//
// # Reading
//
// A reader checks every byte. A manifest must consist of exactly the bytes that were published under its name; a later
// tool that adds a field raises the format version. The size, SHA-256, cardinality, lowest and highest id of each
// bitmap must agree with the manifest, and the encoding of each bitmap must be valid. Otherwise the reader rejects the
// whole generation.
//
// A Refresher swaps whole generations with one atomic pointer, so a lookup on a Snapshot sees one generation. After any
// failure, the Refresher keeps the generation in use and retries. Status, metrics and the log report the failure. A
// cache directory holds a checked copy of a generation, so that a service can start while its source is down; the
// service then reports the outage. Checking an unchanged generation costs two conditional GETs. The Refresher retries a
// faulty live generation after one interval, then two, four, up to 15 minutes, and immediately when current.json
// changes. If the file system hangs, a refresh still ends at its time-out, and Run ends with its context.
//
// RefresherConfig.Require rejects generations by their manifests, for example a generation without a set that the
// policy needs. At a start, the Refresher prefers a cached generation to a rejected generation, and uses a rejected
// generation only if there is no other generation; Status then reports the rejection. The Refresher checks a rejected
// generation again at every interval.
//
// RefresherConfig.Guarded rejects generations that lost too many users, compared with the generation in use. At a
// start, the Refresher compares with the cached generation. Without a cache, the Refresher compares with the newest
// earlier generation of the source that is readable and was not rolled back. If the Refresher rejects the live
// generation at a start, the Refresher uses the earlier generation.
//
// The Refresher loads the next generation on half of the cores, so that calls do not wait. The Refresher recognises
// sets and maps that are already in memory by SHA-256, and neither reads nor stores them twice. These are each set, the
// map of the segments if no segment has changed, and the map of the time zones.
//
// # Snapshot
//
// A Snapshot holds a bitmap.CodeMap of its segments, the bitmaps of its sets, and a CodeMap of the sets of time zones.
// The CodeMap returns the time zone of a user in one lookup, instead of one lookup for each set.
//
// # Pinned generations
//
// Work that spans many API calls pins its generation. A Refresher keeps an earlier generation for RefresherConfig.Keep
// after its last pin, and keeps at most MaxPinned generations. Pins belong to one process. The calls of one piece of
// work may reach several instances, which swap generations at different moments. A Refresher therefore keeps a
// generation without pins for a short time after the swap. If a request names a newer generation than this instance has
// used, Pin returns a NotYetError and triggers a check of the source. For a dropped generation, Pin returns a
// GoneError.
//
// # Files
//
// The files keys, manifest, ids, back, asof, pointer, checked and accepted define the stored documents; load reads a
// generation; snapshot and zones answer lookups. The file refresher (with spoiled, status, cache and metrics) keeps the
// live generation; guarded, held, former, replay, renumber and unify compare generations; insert adds ids to a
// dictionary; pins keeps earlier generations.
//
// # Not here
//
// Changes to a segment in place, and encryption, which a bucket provides.
package segments
