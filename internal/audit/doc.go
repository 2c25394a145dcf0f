// Package audit is the record of every decision: what a record holds, and how its
// bytes lie in a file. Below it, journal writes records while the service decides,
// and archive reads them back, whoever wrote them.
//
//	call decided → journal: encode, buffer, flush each second, roll, upload   (never in the way of an answer)
//	location     → archive: index → files → records in time order → user, message, export, verify, what-if
//
// # Records
//
// A Record is one call that recorded something or could have: a filter call with
// record, a release, a call for permits. Its users are bitmaps, one for each outcome
// and what caused it (Group), disjoint; so a blast of a million neighbouring users
// takes some 130 kB. It names the generation that said who is in which segment and the
// version of the configuration whose limits were in force; the policies themselves lie
// in the location once each, by version.
//
// A record says when its call was given to the store (At) and how long the store took
// (Took). Each send was stamped within that span. So who judges the records again knows
// a send's instant to the length of a call: what would need to know better is counted
// for the service.
//
// # Location
//
//	records/2026-11-22/<sha256>.audit       a rolled file, named after its content; immutable
//	index/2026-11-22/<instance>-<n>.json    which file is the n-th of an instance, what it holds
//	policies/<config version>.yaml          channels, limits and all else that decides, as it was in force
//	erased/<…>.json                         users who were erased, and when: readers show nothing of them from before
//	open/<instance>/<n>.audit               in a directory: the file that is being written
//
// Several instances write one location. Days are those of a file's first record, in UTC.
// A file is at its place before its entry is in the index, and both are there before it
// goes from open: who reads open first, and the index next, sees every record, some twice.
//
// # Files
//
// A file is "capaudit" and frames; numbers are varints (of signed ones zigzag), but for the sums:
//
//	frame    kind (1 byte), length of the payload, check (2: both halves of the CRC-32C of
//	         kind and length, xor), payload, CRC-32C of all of that (4), little endian
//	header   1: format, instance (text), number, begun (ms since 2024), first sequence, widening in ms
//	record   2: see Encoder.appendRecord
//	gap      3: records lost, first and last instant of their calls
//	end      4: records, last sequence, 1 when another than the writer closed the file
//
// A text is its length and UTF-8. In records a text is a reference: 0 and the text, which gets
// the next number, 1 and the text, or 2 plus the number; messages and all other names
// have numbers of their own, as many as dictionary says. Users are a portable roaring
// bitmap, a few of them a list. So a call of one user takes some 35 bytes.
//
// A file without an end was open when its writer died, or is open. Where its last frame
// is not whole it is torn (TornError), which is no damage (DamageError).
//
// record, index and names of keys are what is stored; encode and file write, reader, decode
// and cursor read; dictionary is what both keep.
package audit
