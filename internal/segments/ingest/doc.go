// Package ingest reads raw user ids from the exports of a warehouse and builds segments and sets from them. Package
// ingest reads all formats in formatReaders, uncompressed or compressed with gzip or zstd, from files, S3 objects and
// standard input. Package format parses the files.
//
// # Flow
//
//	inputs → expand patterns → open, decompress → blocks of whole rows → workers: parse → Set
//
// One goroutine per open file reads the file and cuts the content into blocks of 1 MiB at the ends of rows. The number
// of open files is the number of cores, or up to 32 for S3 objects. A pool of workers, one per core and shared by all
// files, parses the blocks into ids. A worker passes the ids to a Writer of the set, which sorts the ids by shard, so
// that the Writer accesses little memory at a time. For Parquet files, the workers read row groups instead of blocks.
// The id space limits the memory: 514 MiB for a set with ids everywhere, plus a few MiB per worker.
//
// # Ids and bad rows
//
// A dense id is a decimal number from 0 to 4294967295, with optional leading zeros and surrounding spaces. The parser
// never truncates, rounds or guesses an id. An id with a sign, a fraction or an exponent, a number above 4294967295, an
// empty field and a null are bad rows. A row with a different number of columns, a blank line between other lines, and
// the name of an unknown segment are also bad rows. A build counts all bad rows, and counts a bad row of several lines
// by its lines. A build keeps the first bad rows of each file, with file, row and value. A fault of a whole file is an
// InputError: a missing column, a damaged archive, a column type without whole numbers, a file of another kind. A file
// with only bad rows is always an error.
//
// Blank lines at the end of a text are not rows. In CSV and TSV with a single column, blank lines at the end are nulls.
//
// # Ids of other kinds
//
// If Config.Scheme is set, inputs hold ids of the kind uint64, uuid or text. A worker passes the images of the ids to
// an imageLists. After all inputs are read, the build sorts every list, merges the lists into the dictionary, and
// converts each list to a bitmap of numbers. The build needs 8 bytes for each id of each segment and set, and 6 bytes
// for each id of the dictionary. If Config.Names is set, the build also needs 24 bytes for each UUID. For each text id,
// the build needs 16 bytes and about the length of the text. The dictionary of an amend has only the ids of its files;
// Result.WarningsOver compares the ids of the files with the live ids.
//
// # The end of a file
//
// A file ends only where its source returns io.EOF. A compressed stream that ends inside a member or frame, and an S3
// object that ends before its announced length, are errors. A file whose length changes during reading, and empty
// standard input, are also errors. Errors at the end of a file are InputErrors, unless the storage or the connection
// failed (objects.StorageError) or the context ended. A text of more than 16 KiB without a final line break is also an
// InputError, because the text may be truncated; see Input.FinalNewline. In NDJSON, the closing brace of the last
// object is sufficient.
//
// # Build
//
// A Plan, from flags or a build file, says which inputs and set operations define each segment and set. Run reads the
// inputs, applies the set operations, finds every overlap, and resolves the overlaps on request. A set operation uses
// the users of a segment before overlaps are resolved, so the result of "everyone minus active" does not depend on the
// precedence.
//
// A generation contains the published sets beside the segments; all other sets only serve the definitions of segments
// and sets. The sets of a table whose rows name them are always published, after the other sets and in the order of
// their names. A build makes the sets after the segments. Sets may overlap with segments and with other sets.
//
// A build makes the segments one after the other, each on all cores. Besides the finished bitmaps and the rows of
// tables, only one set is in memory at a time.
package ingest
