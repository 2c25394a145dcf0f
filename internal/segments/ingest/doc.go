// Package ingest reads raw user ids from whatever a warehouse exports: text, CSV,
// TSV, NDJSON, Parquet and ready-made roaring bitmaps, plain or compressed with
// gzip or zstd, from files, S3 objects and standard input.
//
// # Flow
//
//	inputs → expand patterns → open, decompress → blocks of whole records → workers: parse → Set
//
// One goroutine per open file reads and cuts blocks of 1 MiB at the end of a
// record; a pool of workers, one per core and shared by all files, parses them
// into ids and hands these to a Writer of the set, which sorts them by shards so
// that little memory is touched at a time. Parquet goes by row groups instead of
// blocks. Memory is bounded by the id space: 514 MiB for a set with ids everywhere,
// plus some MiB per worker.
//
// # What is an id, and what is a bad row
//
// An id is a decimal number from 0 to 4294967295; zeros in front of it and spaces
// around it are allowed. Nothing is truncated, rounded or guessed: a sign, a
// fraction, an exponent, a number beyond 32 bits, an empty field, a null, a row
// with another number of columns, a blank line between others, a name that is no
// segment's are bad rows. Every bad row is counted; the first of each file are kept
// with file, row and value. What is not a matter of single rows (a missing column,
// a damaged archive, a type that holds no whole numbers) is an InputError.
//
// Blank lines at the end of a text are not rows.
package ingest
