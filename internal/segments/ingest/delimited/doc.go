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
package delimited
