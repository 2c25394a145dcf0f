// Package parquet reads the column of user ids, and for tables that of the segments,
// of Parquet files as other programs write them: integers, decimals and strings of
// digits, in any codec but those whose bytes are not agreed upon. Other columns are
// not touched.
//
// Nothing of a damaged file is taken for rows: the counts of the footer, of its row
// groups and of their pages are compared, and what the library panics on is an error.
package parquet
