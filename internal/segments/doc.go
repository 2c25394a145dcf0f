// Package segments defines the stored format of generations of segments and reads them. It answers
// which segment, which sets and which time zone a user is in. Package publish writes generations,
// package ingest builds them from raw ids, package bitmap stores the sets of ids, and package objects
// accesses the directory or bucket.
//
// # Vocabulary
//
// A segment is a named set of users, whose numbers are unsigned 32-bit integers; see Ids. A generation is one published
// version of all segments, and a manifest is its index. Segments have an order of precedence: a user in the bitmaps of
// two segments belongs to the earlier one. The code of a segment is its index in the manifest plus 1; code 0 means no
// segment. A set is a named set of users that is not a segment. Sets may overlap and have no precedence. The set
// tz/NAME holds the users in a time zone of the IANA database; a user in several of them belongs to the earliest in the
// manifest.
//
// # Ids
//
// A location has one kind of ids (package ids). The number of a dense id is the id itself. A location of another kind
// has an object ids.json with the kind and the key, and each generation has a dictionary (package dictionary) of the
// images of all its ids: the number of a user is the rank of the image, and is valid in this generation alone. Users of
// two generations are compared by Renumbering. A generation may also have a Back, which converts numbers to ids.
//
// The manifest names the kind and the check of the key. A reader rejects a generation whose ids.json is missing or has
// another kind or key, and a Refresher rejects one whose ids are not those of the generation in use.
//
// # Layout of a location
//
//	<prefix>/bitmaps/<sha256>.roaring       a bitmap in the portable roaring format; immutable, named by its hash
//	<prefix>/generations/<generation>.json  a manifest; immutable
//	<prefix>/ids.json                       the kind and the key of ids that are not dense; written once
//	<prefix>/dictionaries/<sha256>.…        dictionaries and ways back of such ids; immutable, named by their hashes
//	<prefix>/current.json                   the name of the live generation; replaced by compare-and-swap
//	<prefix>/checked.json                   the time of the last complete build, with or without changes
//	<prefix>/controls.json                  holds and rolled-back content; replaced by compare-and-swap
//	<prefix>/gc.json                        the lease of a running gc; replaced by compare-and-swap
//
// A generation's name begins with its time, so names sort by time, and ends with a hash of every field of
// the manifest. current.json repeats the SHA-256 of the manifest. The format version of a manifest is 1
// without sets, 2 with sets, 3 with acceptances, 4 with the as_of of a set, and 5 with ids that are not dense. An older
// program rejects a version that it does not know and keeps its generation. Names of sets appear only in manifests.
//
// The as_of of a set is the time up to which its users contain every change by call. Snapshot.AsOf
// returns this time.
//
// # Reading
//
// The reader checks every byte. A manifest must consist of exactly the bytes that were published under
// its name; a later tool that adds a field raises the format version. The size, SHA-256, cardinality,
// lowest and highest id of each bitmap must agree with the manifest, and its encoding must be valid.
// Otherwise the whole generation is rejected.
//
// A Refresher swaps whole generations with one atomic pointer, so a lookup on a Snapshot sees one generation. After any
// failure, the Refresher keeps the generation in use and retries. Status, metrics and the log report the failure. A
// cache directory holds a checked copy. With it, a service can start while its source is down; it then reports this. An
// unchanged generation costs two conditional GETs. A faulty live generation is retried after one interval, then two,
// four, up to 15 minutes, and immediately when current.json changes. If the file system hangs, a refresh still ends at
// its time-out and Run at the end of its context.
//
// RefresherConfig.Require rejects generations by their manifests, for example without a set that the
// policy needs. At a start, a cached generation is preferred to a rejected one, and a rejected one to
// none; Status then reports the rejection. A rejected generation is checked again at every interval.
//
// RefresherConfig.Guarded rejects generations that lost too many users, compared with the one in use. A start compares
// with the cached generation, or without a cache with the newest earlier generation of the source that is readable and
// was not rolled back. If the start rejects the live generation, it uses the earlier one.
//
// Loading the next generation uses half of the cores, so that calls do not wait. Parts that are already
// in memory, recognised by SHA-256, are neither read again nor stored twice: each set, the map of the
// segments if none has changed, and the map of the zones.
//
// # Snapshot
//
// A Snapshot holds a bitmap.CodeMap of its segments, the bitmaps of its sets, and a CodeMap of the sets of
// time zones, because a lookup wants a user's one zone and not an answer from each set.
//
// # Pinned generations
//
// Work that spans many calls pins its generation. An earlier generation is kept for RefresherConfig.Keep after its last
// pin; at most MaxPinned are kept. Pins belong to one process. The calls of one piece of work may reach several
// instances, which swap at different moments. A generation without pins is therefore kept for a short time after the
// swap. If a request names a newer generation than this instance has used, it returns a NotYetError and triggers a
// check of the source. A dropped generation returns a GoneError.
//
// # Files
//
// keys, manifest, ids, back, asof, pointer, checked and accepted define the stored documents; load reads a generation;
// snapshot and zones answer lookups; refresher keeps the live generation (with spoiled, status, cache and
// metrics); guarded, held, former, replay, renumber and unify compare generations; insert adds ids to a
// dictionary; pins keeps earlier ones.
//
// # Not here
//
// Changes to a segment in place, and encryption, which a bucket provides.
package segments
