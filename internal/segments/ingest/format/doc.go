// Package format opens and parses files of user ids and files of sends, uncompressed or compressed with gzip or zstd.
// Package ingest has the list of the file formats, chooses the files and builds sets of users from the ids.
//
// # Opening
//
// A File reads and decompresses a file up to its real end. A file ends only where its source returns io.EOF. A
// compressed stream that ends inside a gzip member or zstd frame, and an S3 object that ends before its announced
// length, cause an error. A file whose length changes during reading, and empty standard input, also cause an error.
// For a fault of the storage or of the connection, the error is an objects.StorageError.
//
// # Delimited files
//
// A text file has one id per line. The parser reads CSV and TSV in the variants (dialects) that people and databases
// write. OpenDelimited examines the first row and chooses the columns that the parser reads. The resulting Syntax cuts
// the file into blocks of whole rows and parses the blocks. For lines without quotes and escapes, which are most lines,
// the Syntax has a fast parser.
//
// If a closing quote is missing, a field encloses the following rows. The parser does not see the enclosed rows, so the
// set lacks the users of these rows. If a later quote closes the field, the numbers of rows and bad rows do not reveal
// the lost rows. TSV has no quotes unless the user requests them, because most programs write TSV without quotes. A row
// that spans several lines is bad if more than three of its lines look like rows. The report on a file shows the file's
// longest row.
//
// # Parquet
//
// In Parquet, the parser reads ids from integers, decimals and strings of digits, in every compression codec whose byte
// format is unambiguous. The parser reads only the necessary columns. In a Parquet file, the parser compares the row
// counts of the footer, the row groups and the pages. The parser converts a panic of the Parquet library to an error. A
// damaged Parquet file therefore yields no wrong rows.
//
// # Sends
//
// ReadSends reads files about messages that another system sent: rows with a user, a time, and usually a channel, a
// message id and a namespace. A user is given as a decimal number from 0 to 4294967295, or as an id of
// SendOptions.Scheme in any spelling. The time of a send has one of these forms:
//
//   - RFC 3339, such as 2026-11-20T09:12:44.120Z or with an offset; a space may replace the T
//   - RFC 3339 without an offset, if SendOptions.Zone is set. If the clocks of the zone showed the time twice, for
//     example at the end of summer time, ReadSends uses the later instant. If clocks of the zone skipped the time, the
//     row is bad
//   - seconds since 1970, such as 1795252364 or 1795252364.120, up to 11 digits before the point
//   - milliseconds since 1970, 12 or 13 digits
//   - in Parquet a TIMESTAMP in any unit; a TIMESTAMP without adjustment to UTC has no offset
//
// ReadSends truncates times to milliseconds. A row of a file about sends is bad if its time is before the year 2000 or
// in the future. If the row has a message id, a time up to one second in the future is allowed. The Parquet types DATE,
// TIME and INT96 are not valid for times. If the field of the channel or of the message id is empty, the send has no
// channel or no message id. An empty namespace field means the namespace without a name; the row is bad if
// SendOptions.Namespace names another namespace. For a bad row, the caller gets a RowError. If the format has lines,
// the RowError contains the number of the line. For a fault of the whole file, ReadSends returns an error. Faults of
// the whole file are a missing column, a broken stream, or a text file without a final line break (see
// SendOptions.FinalNewline).
package format
