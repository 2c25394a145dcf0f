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
package sends
