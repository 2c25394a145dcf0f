// Package objects reads and writes objects in a directory or in an S3 bucket. A Location stores the published
// generations of segments. Files reads the input files of segmentbuild. The package does not interpret the content of
// objects. No other package uses the AWS SDK.
//
// # Location
//
// A Location writes each object as a whole: a reader finds either the complete object or no object. Most objects never
// change after Put. An object of at most MaxDocumentBytes is called a document, and a document can be replaced. Replace
// writes a document only if the document still has the given tag; Overwrite writes unconditionally. Source has only the
// reading methods of a Location. The acceptance test TestLocation checks one contract for a directory and for a real S3
// server.
//
// A Directory writes an object to a file with a temporary name, which begins with TempPrefix, and then renames the
// file. A crash may leave the temporary file in the directory. Replace holds a file lock, which the operating system
// releases if the process dies. If the file system hangs, callers return when their contexts end. At most one hung file
// operation per path remains.
//
// In S3, Replace is a conditional PUT (If-Match, If-None-Match). Before the first conditional PUT, a probe checks that
// the server honours conditions. Replace returns ErrNoConditions if the server ignores conditions. The S3 server
// verifies the SHA-256 of all bytes that it receives. The package transfers objects above 8 MiB in parallel parts. The
// package cancels a stalled request and retries the request a few times. If S3Config.Patient is set, the package
// retries until the context of the request ends.
//
// # Files
//
// Patterns have one meaning for a directory and for a bucket; ** matches any number of directories. If the connection
// breaks while an S3 object is read, the package resumes reading at the next byte, but only if the object still has the
// same version.
//
// # Errors
//
// Callers recognise ErrNotFound, ErrNotModified, ErrLostRace and ErrNoConditions with errors.Is. A StorageError reports
// a fault of the storage or of the connection, and says nothing about the stored objects.
package objects
