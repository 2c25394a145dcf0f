// Package ingest reads user ids from the exports of a data warehouse and builds segments and sets from them. Package
// ingest reads all file formats in formatReaders, uncompressed or compressed with gzip or zstd, from files, S3 objects
// and standard input. Package format parses the files.
//
// # Flow
//
//	inputs → expand patterns → open, decompress → blocks of whole rows → workers: parse → Set
//
// One goroutine per open file reads the file and cuts the content into blocks of 1 MiB at the ends of rows. The number
// of open files is the number of CPU cores, or up to 32 for S3 objects. A pool of workers, one per core and shared by
// all files, parses the blocks into ids. A worker passes the ids of the rows to a Writer of the set. The Writer sorts
// the ids by shard (part of the set), and so accesses little memory at a time. In Parquet files, the workers read row
// groups instead of blocks of rows. A set of dense ids (32-bit numbers) needs at most 514 MiB of memory, plus a few MiB
// per worker.
//
// # Ids and bad rows
//
// A dense id is a decimal number from 0 to 4294967295, with optional leading zeros and surrounding spaces. The parser
// never shortens, rounds or guesses an id. A row is bad if its id is empty, null, or a number above 4294967295, or if
// it has a sign, a fraction or an exponent. Further kinds of bad rows are a row with a different number of columns, a
// blank line between other lines, and a row with the name of an unknown segment. A build counts all bad rows; a bad row
// that spans several lines counts as often as it has lines. For its report, a build keeps the first bad rows of each
// file: the name of the file, the number of the row and the value. For a fault of a whole file, the error is an
// InputError. Faults of a whole file are, for example, a missing column, a damaged archive, a column type without whole
// numbers, or another kind of file. A file with only bad rows is always an error.
//
// Blank lines at the end of a text file are not rows. In CSV and TSV files with a single column, blank lines at the end
// count as null ids, and are therefore bad rows.
//
// # Ids of other kinds
//
// If Config.Scheme is set, inputs hold ids of the kind uint64, uuid or text. A worker passes the images (64-bit numbers
// that stand for the ids) to a value of the type imageLists. After the build has read all inputs, it sorts every list,
// merges the lists into the dictionary, and converts each list to a bitmap of user numbers. The build needs 8 bytes of
// memory for each id of each segment and set, and 6 bytes for each id of the dictionary. If Config.Names is set, the
// build also needs 24 bytes for each UUID, or 16 bytes plus about the length of the text for each text id. The
// dictionary of an amend (update of some sets) has only the ids of its input files. Result.WarningsOver compares the
// ids in an amend's dictionary with the live ids.
//
// # The end of a file
//
// A file ends only where its source returns io.EOF. A compressed stream that ends inside a gzip member or zstd frame,
// and an S3 object that ends before its announced length, cause an error. A file whose length changes during reading,
// and empty standard input, also cause an error. Errors at the end of a file are InputErrors, unless the storage or the
// connection failed (objects.StorageError) or the context ended. A text file of more than 16 KiB without a final line
// break also causes an InputError, because the file may be truncated; see Input.FinalNewline. In NDJSON, the closing
// brace of the last object shows that the file is complete.
//
// # Build
//
// A Plan, from command-line flags or a build file, defines each segment and set by inputs and set operations. Run reads
// the inputs, applies the set operations, and finds users who are in several segments. If the operator requests it, Run
// keeps a user who is in several segments only in the first of these segments. Set operations see all users of a
// segment, even users whom Run later removes because an earlier segment also contains them. The result of a set
// operation such as "everyone minus active" therefore does not depend on the order of the segments.
//
// A generation contains the segments and the published sets of the plan. Unpublished sets serve only in the definitions
// of segments and other sets. If the rows of a table name sets, all sets in the table are published, after the other
// sets and in the order of their names. A build makes the sets after the segments. Sets may have users in common with
// segments and with other sets.
//
// A build makes one segment after another, and uses all CPU cores for each segment. Besides finished bitmaps and the
// rows of tables, a build keeps only one unfinished set in memory at a time.
package ingest
