// Package ingest reads raw user ids from the exports of a warehouse and builds segments and sets from
// them. It reads every format of formatReaders, uncompressed or compressed with gzip or zstd, from files, S3
// objects and standard input. Package format parses the files.
//
// # Flow
//
//	inputs → expand patterns → open, decompress → blocks of whole rows → workers: parse → Set
//
// One goroutine per open file reads the file and cuts it into blocks of 1 MiB at the ends of rows. As
// many files are open as there are cores, and up to 32 S3 objects. A pool of workers, one per core
// and shared by all files, parses the blocks into ids. A worker passes the ids to a Writer of the set,
// which sorts them by shard so that it touches little memory at a time. Parquet files are split by row
// groups instead of blocks. The id space limits the memory: 514 MiB for a set with ids everywhere, plus
// a few MiB per worker.
//
// # Ids and bad rows
//
// An id is a decimal number from 0 to 4294967295, with optional leading zeros and surrounding spaces. Nothing is
// truncated, rounded or guessed. These are bad rows: a sign, a fraction, an exponent, a larger number, an empty field,
// a null, a row with a different number of columns, a blank line between other lines, and the name of an unknown
// segment. Every bad row is counted, by its lines if it spans several. A build keeps the first bad rows of each file,
// with file, row and value. A fault of a whole file is an InputError: a missing column, a damaged archive, a column
// type without whole numbers, a file of another kind. A file with only bad rows is always an error.
//
// Blank lines at the end of a text are not rows. In CSV and TSV with a single column they are nulls.
//
// # Ids of other kinds
//
// With Config.Scheme, inputs hold ids of the kind uint64, uuid or text. A worker passes the images of the ids to an
// imageLists. When all inputs are read, every list is sorted, the lists are merged into the dictionary, and each list
// becomes a bitmap of numbers, with which the build goes on. The memory is 8 bytes for each id of each segment and set,
// 6 bytes an id for the dictionary, and with Config.Names 24 bytes a UUID, or about the length of a text and 16 bytes.
// The dictionary of an amend has only the ids of its files; Result.WarningsOver compares them with the live ids.
//
// # The end of a file
//
// A file ends only where its source returns io.EOF. The following are errors: a compressed stream that
// ends inside a member or frame, an S3 object that ends before its announced length, a file whose length
// changes while it is read, and empty standard input. They are InputErrors unless the storage or the
// connection failed (objects.StorageError) or the context ended. A text of more than 16 KiB without a
// final line break is also an InputError, because it may be truncated; see Input.FinalNewline. In NDJSON
// the closing brace of the last object is sufficient.
//
// # Build
//
// A Plan, from flags or a build file, says which inputs and set operations define each segment and set.
// Run reads the inputs, applies the operations, finds every overlap, and resolves the overlaps on
// request. A set operation uses the content before overlaps are resolved, so the result of "everyone
// minus active" does not depend on the precedence.
//
// Sets are either ingredients or published beside the segments. The sets of a table whose rows name them
// are always published, after the other sets and in the order of their names. Sets are built after the
// segments, and may overlap with everything.
//
// Segments are built one after the other, each on all cores. Besides the finished bitmaps and the rows of
// tables, only one set is in memory at a time.
package ingest
