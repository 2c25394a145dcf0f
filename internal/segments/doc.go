// Package segments defines the stored format of generations (published versions of all user segments and sets), and
// reads them. Package segments also looks up the segment, the sets and the time zone of a user. Package publish writes
// generations, package ingest builds generations from raw ids, package bitmap stores sets of ids, and package objects
// accesses the directory or bucket.
//
// # Vocabulary
//
// A segment is a named group of users; a user is in at most one segment. In a bitmap (compressed set of numbers), an
// unsigned 32-bit number stands for a user; see the section Ids. A generation is one published version of all segments
// and sets, and a manifest is the JSON index of a generation. Segments have an order of precedence: a user in the
// bitmaps of two segments belongs to the segment that comes first in the manifest. The code of a segment is its index
// in the manifest plus 1. The code 0 stands for users without a segment. A set is a named group of users that is not a
// segment. Sets may overlap and have no precedence. The set "tz/NAME" holds the users who live in the time zone NAME of
// the IANA database. A user in several time zone sets belongs to the earliest of these sets in the manifest.
//
// # Ids
//
// A location (directory or bucket) has user ids of one kind; see package ids. The number of a dense id (32-bit integer)
// is the id itself. A location with another kind of ids has an object ids.json with the kind and the hash key of the
// ids. If ids are not dense, each generation has a dictionary (package dictionary): the sorted images (64-bit numbers
// that stand for ids) of all ids. The number of a user is the index of the id's image in the dictionary. A user number
// is valid only in one generation. The type Renumbering makes bitmaps of two generations comparable if their
// dictionaries give users different numbers. A generation may also have a Back: a structure that converts user numbers
// to ids.
//
// The manifest names the kind of the user ids and a checksum of their hash key. A reader rejects a generation if
// ids.json is missing, or if the kind or key in ids.json differs from the manifest. A Refresher also rejects a
// generation if the kind or key of its ids differs from the generation in use.
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
// The name of a generation begins with its creation time, so that names sort by time. The name of a generation ends
// with a hash of every field of the manifest. The pointer current.json repeats the SHA-256 of the manifest. The format
// version of a manifest depends on its content: 1 without sets, 2 with sets, 3 with approved changes, 4 with the field
// "as_of", and 5 with ids that are not dense. An older program rejects a manifest with a format version that it does
// not support, and keeps the generation that it has. Names of sets appear only in manifests, not in object keys.
//
// The field "as_of" of a set is a time: the published users reflect all earlier changes of the set by API calls. The
// method Snapshot.AsOf returns the "as_of" of a set.
//
// # Reading
//
// A reader checks every byte of a generation. A manifest must consist of exactly the bytes that were published under
// its name. If a later version of capper adds a field to the manifest, it must raise the format version. The size,
// SHA-256, cardinality, lowest and highest id of each bitmap must agree with the manifest, and the encoding of each
// bitmap must be valid. If one bitmap or the manifest fails a check, the reader rejects the whole generation.
//
// A Refresher replaces the whole generation with one atomic pointer, so that all lookups on a Snapshot see the same
// generation. After any failure to load a new generation, the Refresher keeps the generation in use and tries again
// later. Status, metrics and the log report a failure to load a generation. A cache directory holds a checked copy of a
// generation, so that a service can start while its source is down. While the source is down, the service reports the
// outage. If the live generation has not changed, a check costs two conditional GET requests to the source. If the live
// generation is faulty, the Refresher retries after one interval, then after two, four and so on, up to 15 minutes.
// When current.json changes, the Refresher retries at its next check. If the file system hangs, a refresh still ends at
// its time-out, and Run ends with its context.
//
// The function RefresherConfig.Require can reject a generation by its manifest, for example if a set that the policy
// needs is missing. When a service starts, its Refresher prefers a cached generation to a rejected one. The Refresher
// uses a rejected generation only if no other generation exists. If the Refresher uses a rejected generation, Status
// reports the rejection. The Refresher checks a rejected generation again at every interval.
//
// RefresherConfig.Guarded makes the Refresher reject a generation that lost too many users, compared with the
// generation in use. When a service starts, the Refresher compares the live generation with the cached generation.
// Without a cache, the Refresher compares with the newest earlier generation of the source that is readable and was not
// rolled back. If the comparison makes the Refresher reject the live generation, the Refresher uses the earlier
// generation.
//
// The Refresher loads the next generation on half of the CPU cores, so that API calls do not wait. The Refresher
// recognises bitmaps in memory by their SHA-256, and neither reads nor stores such bitmaps again. The Refresher reuses
// each unchanged set. If no segment has changed, the Refresher also reuses the map of the segments. If no time zone set
// has changed, the Refresher also reuses the map of the time zones.
//
// # Snapshot
//
// A Snapshot is a generation in memory: a bitmap.CodeMap of the segments, the bitmaps of the sets, and a CodeMap of the
// time zone sets. With the CodeMap of the time zone sets, one lookup finds a user's time zone, instead of one lookup
// for each time zone set.
//
// # Pinned generations
//
// Work that spans many API calls pins its generation (published version): each call names the generation, and all calls
// get responses from this generation. A Refresher keeps an earlier generation in memory for RefresherConfig.Keep after
// its last pin, and keeps at most MaxPinned generations. Pins belong to one process. The API calls of one piece of work
// may reach several instances of the service, and these instances load a new generation at different moments. So that
// API calls still find a replaced generation, a Refresher keeps the generation for a short time, even without pins. If
// a request names a newer generation than this instance has used, Pin returns a NotYetError and makes the Refresher
// check the source. For a generation that is no longer in memory, Pin returns a GoneError.
//
// # Files
//
// The files keys.go, manifest.go, ids.go, back.go, asof.go, pointer.go, checked.go and accepted.go define the stored
// documents. The file load.go reads a generation; snapshot.go and zones.go look up users. The file refresher.go (with
// spoiled.go, status.go, cache.go and metrics.go) keeps the live generation in memory. The files guarded.go, held.go,
// former.go, replay.go, renumber.go and unify.go compare generations. The file insert.go adds ids to a dictionary, and
// pins.go keeps earlier generations in memory.
//
// # Not here
//
// Package segments does not change segments in place. Package segments does not encrypt segments; a bucket can encrypt
// its objects.
package segments
