// Package objects is the places where objects lie: Location, which generations of
// segments are published to and read from, and Files, which segmentbuild reads its
// inputs from. Both are a directory or an S3 bucket. It knows nothing of segments,
// and no other package knows the AWS SDK.
//
// # Location
//
// Objects are whole: a reader sees all of one or nothing. Most never change after
// Put; a document, at most MaxDocumentBytes, is replaced: by Replace, which compares
// and swaps its tag, or by Overwrite. Source is the half that reads. One acceptance
// suite (TestLocation) holds a directory and a real S3 server to the same contract.
//
// In a directory an object is written beside its place and renamed; Replace works
// under a file lock, which the system frees when the process dies. What a crash
// leaves has a name that begins with TempPrefix. A file system that does not answer
// holds nobody up beyond the end of his context: the call is left behind, at most
// one per path (hung).
//
// In S3 Replace is a conditional PUT (If-Match, If-None-Match). A server that
// ignores conditions is found out by a probe before the first of them, and refused.
// The server verifies the SHA-256 of what it receives. Objects above 8 MiB go in
// parallel parts. A request that stands still is given up and tried again: a few
// times, or where S3Config says Patient until its context ends.
//
// # Files
//
// A pattern means the same in a directory and in a bucket; ** stands for any number
// of directories. An input in S3 whose body breaks off is read on from there, if it
// is still the same version.
//
// # Errors
//
// ErrNotFound, ErrNotModified, ErrLostRace and ErrNoConditions are told by
// errors.Is. A StorageError is a fault of the place or of the way to it, and says
// nothing about what is stored.
package objects
