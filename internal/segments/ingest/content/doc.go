// Package content opens files of raw user ids, in a directory, in S3 or on standard
// input, and gives their content: decompressed, and to where it really ends.
//
// # Where a file ends
//
// Only its source's own io.EOF ends a file. A compressed stream that ends within a
// member or frame, an S3 object whose body ends before its announced length, a file
// that changes its length while it is read, empty standard input: each is an error.
// It is a objects.StorageError where the storage or the way to it is at fault.
package content
