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
package audit
