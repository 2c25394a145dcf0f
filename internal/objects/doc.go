// Package objects reads and writes objects in a directory or in an S3 bucket. A Location stores the published
// generations of user segments. The interface Files reads the input files of the program segmentbuild. Package objects
// does not interpret the content of objects. No other package uses the AWS SDK.
//
// # Location
//
// A Location writes each object as a whole: a reader finds either the complete object or no object. Most objects at a
// Location never change after the method Put has stored them. An object of at most MaxDocumentBytes is called a
// document, and callers can replace a document. Replace writes a document only if it still has the tag (version) that
// the caller passes; Overwrite writes unconditionally. The interface Source has the reading methods of a Location, but
// not the writing methods. The test TestLocation checks that a directory and a real S3 server behave in the same way.
//
// A Directory writes an object to a file with a temporary name, which begins with TempPrefix, and then renames the
// file. After a crash, a file with a temporary name may remain in the directory. The method Replace of a Directory
// holds a file lock while it works; if the process dies, the operating system releases the lock. If the file system
// hangs, the methods of a Directory return a second after the end of their contexts. For each path, at most one hung
// file operation remains.
//
// In S3, Replace sends a conditional PUT request (If-Match, If-None-Match). Before the first conditional PUT, a test
// request (probe) checks that the server honours the headers If-Match and If-None-Match. If the S3 server ignores
// conditions, Replace returns ErrNoConditions. The S3 server verifies the SHA-256 of all bytes that it receives.
// Package objects transfers S3 objects above 8 MiB in parallel parts. If a request to S3 transfers no bytes for some
// time, package objects cancels the request and retries it a few times. If S3Config.Patient is true, package objects
// retries a request to S3 until the context of the request ends.
//
// # Files
//
// File patterns have the same meaning for a directory and for a bucket; "**" matches any number of directories. If the
// connection breaks during the download of an S3 object, package objects continues at the next byte, provided that the
// object still has the same version.
//
// # Errors
//
// Callers recognise the errors ErrNotFound, ErrNotModified, ErrLostRace and ErrNoConditions with errors.Is. The error
// StorageError reports a fault of the storage or of the connection; the stored objects may be intact.
package objects
