// Package ingest reads raw user ids from whatever a warehouse exports: text, CSV,
// TSV, NDJSON, Parquet and ready-made roaring bitmaps, plain or compressed with
// gzip or zstd, from files, S3 objects and standard input.
//
// # Flow
//
//	inputs → expand patterns → content: open, decompress → blocks of whole rows → workers: parse → Set
//
// One goroutine per open file, of which there are as many as cores and of S3 objects
// 32, reads and cuts blocks of 1 MiB at the end of a row; a pool of workers, one per
// core and shared by all files, parses them into ids and hands these to a Writer of
// the set, which sorts them by shards so that little memory is touched at a time.
// Parquet goes by row groups instead of blocks. Memory is bounded by the id space:
// 514 MiB for a set with ids everywhere, plus some MiB per worker.
//
// # Packages
//
// Imports point downwards; none of those below knows a Reader.
//
//	ingest      which files, which format, what is tolerated and expected, who works when
//	content     a file opened, decompressed, and read to where it really ends
//	delimited   text, CSV, TSV: dialects, columns, rows over several lines
//	ndjson      an object a line
//	parquet     row groups, and the columns of ids and of segments
//	distinct    how many different ids a file has
//	rows        what all formats share: an id, a bad row, the block that a parser fills
//
// # What is an id, and what is a bad row
//
// An id is a decimal number from 0 to 4294967295; zeros in front of it and spaces
// around it are allowed. Nothing is truncated, rounded or guessed: a sign, a
// fraction, an exponent, a number beyond 32 bits, an empty field, a null, a row
// with another number of columns, a blank line between others, a name that is no
// segment's are bad rows. Every bad row is counted, by its lines where it has
// several; the first of each file are kept with file, row and value. What is not a
// matter of single rows (a missing column, a damaged archive, a type that holds no
// whole numbers, a file of another kind) is an InputError. A file of bad rows alone
// is refused whatever is tolerated.
//
// Blank lines at the end of a text are not rows, except in CSV and TSV of one
// column, where they are nulls.
//
// # Where a file ends
//
// Only its source's own io.EOF ends a file. A compressed stream that ends within
// a member or frame, an S3 object whose body ends before its announced length (it
// is read on from there a few times first, the same version of it), a file that
// changes its length while it is read, empty standard input: each is an error.
// It is an InputError unless the storage or the way to it is at fault
// (objects.StorageError) or the time was over. An InputError, too, is a text of
// more than 16 KiB whose last line does not end (Input.FinalNewline), which is how
// a plain text that was cut off looks; but in NDJSON a last object that is whole
// shows that nothing is missing of it.
//
// # Build
//
// Package build makes segments and sets of raw ids: a Plan, from flags or a build file, says
// which inputs and set operations make which segment; Run reads the inputs,
// applies the operations, finds every overlap and resolves them on request.
//
// A set operation refers to other segments and sets as they are before overlaps
// are resolved, so "everyone minus active" does not depend on precedence.
//
// Sets are ingredients, or are published beside the segments; those of a table with the
// names of sets are published too, behind the others by name, for it is the rows that
// name them. They are made after the segments, in the same way, and overlap with everything.
//
// Segments are made one after the other, each with all cores: one set at a time
// is in memory beside the bitmaps that are done, and the rows of tables, which are
// one set for each segment.
package ingest
