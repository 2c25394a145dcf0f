// Package content opens files of raw user ids, in a directory, in S3 or on standard
// input, and gives their content: decompressed, and to where it really ends.
//
// # Where a file ends
//
// Only its source's own io.EOF ends a file. A compressed stream that ends within a
// member or frame, an S3 object whose body ends before its announced length, a file
// that changes its length while it is read, empty standard input: each is an error.
// It is a objects.StorageError where the storage or the way to it is at fault.
//
// # Delimited
//
// Package delimited parses text with one id a line, CSV and TSV, in the dialects
// that people and databases write.
//
// Open looks at the first row and decides which columns are read; the Syntax then
// cuts the text into blocks of whole rows and parses them. Lines without quotes
// and escapes, which are nearly all of most files, are parsed in one pass over
// their bytes.
//
// # Quotes and escapes
//
// A quote that is missing lets a field swallow the rows that follow, which then are
// in no set and, when another quote happens to close it, in no count either. So TSV,
// whose writers know no quotes, has none unless it is asked for; a row of several
// lines counts as so many, and is bad when more than three of these read as rows
// themselves, which is more than an address or a note has; and the longest one is
// part of the file's report.
//
// # Parquet
//
// Package parquet reads the column of user ids, and for tables that of the segments,
// of Parquet files as other programs write them: integers, decimals and strings of
// digits, in any codec but those whose bytes are not agreed upon. Other columns are
// not touched.
//
// Nothing of a damaged file is taken for rows: the counts of the footer, of its row
// groups and of their pages are compared, and what the library panics on is an error.
//
// # Rows
//
// Package rows is what the formats of user ids have in common: what a row's user
// id is and what is not, which column holds it, how a bad row is told, and the
// Block that a parser fills with the rows of one piece of a file.
//
// It knows no files: package content opens them, the packages of the formats parse
// them, package ingest brings both together.
//
// # Sends
//
// Package sends reads files of sends that were made elsewhere: rows of a user, a time, and mostly a
// channel and a message id, and a namespace where there are several, as CSV, TSV, NDJSON or Parquet, plain or packed
// with gzip or zstd.
//
// # What is a send, and what is a bad row
//
// A user is a decimal number from 0 to 4294967295. A time is one of
//
//   - RFC 3339, as 2026-11-20T09:12:44.120Z or with an offset; a space may stand in the place of T
//   - the same without an offset, where a time zone is given: Options.Zone; else it is a bad row. Of an hour that
//     clocks went through twice it is the later one; a time that clocks left out is a bad row
//   - seconds since 1970, as 1795252364 or 1795252364.120, up to 11 digits before the point
//   - milliseconds since 1970, 12 or 13 digits
//   - in Parquet a TIMESTAMP, by its unit; one that is not adjusted to UTC is one without an offset
//
// Times are cut to the millisecond. What lies before 2000 is a bad row, as dates written as numbers do, and so is what
// lies in the future: by up to a second it may, with a message id. Parquet's DATE, TIME and INT96 are no times. An
// empty channel or message id is none. An empty namespace is the one without a name, also where Options.Namespace names
// another: the row is bad then. What a row cannot be read for is a RowError, with the line where the format has lines;
// what a file cannot be read for is an error of Read: a column that is missing, a stream that broke, a text whose last
// line does not end (see Options.FinalNewline).
package format
