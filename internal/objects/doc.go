// Package objects reads and writes objects in a directory or in an S3 bucket. A Location stores the
// published generations of segments; Files reads the input files of segmentbuild. The package knows
// nothing about segments, and no other package uses the AWS SDK.
//
// # Location
//
// Objects are written as a whole: a reader sees a complete object or none. Most objects never change
// after Put. A document, at most MaxDocumentBytes long, can be replaced: Replace compares and swaps the
// document's tag, and Overwrite replaces unconditionally. Source is the reading half of a Location.
// One acceptance test (TestLocation) checks the same contract for a directory and for a real S3
// server.
//
// A directory receives an object under a temporary name, which begins with TempPrefix, and then renames
// it. A crash may leave the temporary file behind. Replace holds a file lock, which the operating
// system releases when the process dies. If the file system hangs, callers return when their contexts
// end; at most one hung call per path stays behind.
//
// In S3, Replace is a conditional PUT (If-Match, If-None-Match). Before the first conditional PUT, a
// probe checks that the server honours conditions; a server that ignores them is rejected. The server
// verifies the SHA-256 of the bytes that it receives. Objects above 8 MiB are transferred in parallel
// parts. A stalled request is cancelled and retried: a few times, or until its context ends if
// S3Config.Patient is set.
//
// # Files
//
// A pattern matches the same names in a directory and in a bucket; ** matches any number of
// directories. If the connection breaks while an S3 object is read, reading resumes at the same byte,
// provided that the object still has the same version.
//
// # Errors
//
// ErrNotFound, ErrNotModified, ErrLostRace and ErrNoConditions are recognised with errors.Is. A
// StorageError reports a fault of the storage or of the connection, and says nothing about the stored
// objects.
package objects
