// Package backup is the archive of an embedded store: a tar file that says itself whether
// it is whole.
//
//	files of the database, as they were at one instant
//	FILES           the write-ahead logs and manifests among them, which a start demands
//	marker.…        what leads to the rest; without it there is no database
//	manifest.json   which store, until when, by which program; each file's size and SHA-256
//	SHA256          that of all bytes before
//
// The archive ends with the sum, so it is written in one pass, to whatever takes bytes, and
// one that was cut off has no end. The bytes from the sum's header on are determined by the
// sum: Verify compares all of them, so a byte that is different anywhere is noticed, also
// where tar would not look.
//
// Extract makes a directory of an archive that is whole. What leads to the rest comes last: of an
// extraction that was killed a service says what is missing, and does not start.
package backup
