// Package audit defines the audit record of every decision, and the file format of these records. Package journal
// writes the audit records in the background. Package archive reads the audit records of all service instances.
//
//	call decided → journal: encode, buffer, flush each second, roll, upload   (never delays an answer)
//	location     → archive: index → files → records in time order → user, message, export, verify, what-if
//
// # Records
//
// A Record describes one API call of one of these kinds: a filter call with "record": true, a release (removal of
// sends), a permit request, or a change of a set. The Record groups the users of the call by outcome and reason
// (Group). The groups of a Record are disjoint bitmaps. The record of a call for a million neighbouring users takes
// some 130 kB. The Record names the generation of the segments and the version of the configuration under which the
// call was decided. The audit location stores the policy of each configuration version once. If ids are not dense
// 32-bit numbers, the record holds id images (64-bit hashes, capping.UserID) in ascending order. With id images, the
// record of a call for a million users takes 5.7 MB.
//
// A record holds the time when the service passed the call to the store (At) and the time that the store took (Took).
// The timestamp of each send of a call is between At and At plus Took. Readers of the audit records know the beginning
// and the end of a call, and not the exact times of its sends. If the known times do not prove that a send violated a
// limit, an analysis assumes that the service decided correctly.
//
// # Location
//
//	records/2026-11-22/<sha256>.audit       a rolled file, named by its content; immutable
//	index/2026-11-22/<instance>-<n>.json    the index entry of the file n of an instance
//	policies/<config version>.yaml          channels, limits and all other settings that affect decisions
//	erased/<…>.json                         erased users and the time; readers hide their earlier records
//	open/<instance>/<n>.audit               in a directory: the file that is being written
//	open/ids.json                           kind of ids and check of the key, unless the ids are dense
//
// Several service instances write to one audit location. The day in the object key of an audit file is the day of the
// file's first record, in UTC. The writer stores first the complete file, then the index entry of the file, and then
// removes the open file. A reader that lists open audit files before the index therefore sees every record, and some
// records twice.
//
// # Files
//
// An audit file is the text "capaudit" followed by frames: entries, each with its length and checksums. In an audit
// file, numbers are encoded as varints, and signed numbers as zigzag varints. Checksums have a fixed size:
//
//	frame    kind (1 byte), length of the payload, checksum of both (2: the halves of their CRC-32C,
//	         xor), payload, CRC-32C of all of that (4), little endian
//	header   1: format, instance (text), number, begun (ms since 2024), first sequence, widening in ms; of format 2
//	         also kind of ids (text) and check of the key (text)
//	record   2: see Encoder.appendRecord
//	gap      3: records, first and last instant of their calls
//	end      4: records, last sequence, 1 if another process than the writer closed the file
//
// An audit file stores a text as its length and its UTF-8 bytes. A record refers to a text by a number. After the
// number 0, a new text follows, which readers add to the file's dictionary under the next free number. After the number
// 1, a new text follows, which readers do not add to the dictionary. The number 2+i means the text i of the dictionary.
// An audit file has two dictionaries: one for message ids, and one for all other texts. The constants in dictionary.go
// limit the size of each dictionary. An audit file stores the users of a group as a portable roaring bitmap, or as a
// list if the group has few users. The record of a call for one user takes some 35 bytes in an audit file. Audit files
// whose user ids are not dense 32-bit numbers have format 2 and hold id images (64-bit hashes) as Rice-coded gaps; see
// images.go.
//
// If an audit file has no end frame (last entry), the file's writer is still writing, or has died. An audit file that
// ends inside a frame (entry) counts as torn (TornError), and not as damaged (DamageError).
package audit
