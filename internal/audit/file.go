package audit

import (
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"capper/internal/capping"
)

// Format and FormatImages are the versions of the audit file format. Writers and readers support no other versions.
const (
	Format       = 1 // for dense ids
	FormatImages = 2 // for other ids: users are id images, and the header names kind and key check
)

// The constant magic is the text at the beginning of every audit file.
const magic = "capaudit"

// These constants are the kinds of frames (entries) in an audit file: header, record, gap and end.
const (
	frameHeader byte = 1
	frameRecord byte = 2
	frameGap    byte = 3
	frameEnd    byte = 4
)

// MaxFrame and the constants below MaxFrame limit the sizes in an audit file. A reader rejects an audit file that
// exceeds one of the limits.
const (
	// MaxFrame is the maximum size of a frame's payload in bytes. The record of a call with ten million users,
	// scattered over all ids, takes less than MaxFrame.
	MaxFrame = 64 << 20
	// MaxText is the maximum size of one text in a record, such as an expression, in bytes.
	MaxText = 1 << 20
)

// Header is the first entry of an audit file. A Header names the writer of the audit file, and holds the settings
// that all records of the file share.
type Header struct {
	Instance string // the instance that writes the file
	Number   uint64 // number of the file within the instance, from 1
	Begun    capping.Instant
	First    uint64        // sequence number of the first record, even if this record was lost
	Widening time.Duration // time by which the store extended rolling windows, see capping.Widening
	IDs      IDs           // ids of the users in all records
}

// A Gap is an entry of an audit file with the number of consecutive records that the instance lost.
type Gap struct {
	Lost     uint64          // number of lost records
	From, To capping.Instant // times of the first and the last lost call
}

// End is the last entry of a closed audit file. If an audit file has no End, the file's writer is still writing, or has
// died.
type End struct {
	Records uint64 // records in the file
	Last    uint64 // last sequence number, including lost records; Header.First - 1 for a file without records
	// Recovered is true if another process closed the file after its writer died. The file may then lack calls of the
	// writer's last second.
	Recovered bool
	Closed    capping.Instant // if Recovered: time when the file was closed; missing calls ended earlier
}

// A Frame is one entry (record, gap or end) of an audit file after the header. One field of a Frame is set, and all
// other fields are nil.
type Frame struct {
	Record *Record
	Gap    *Gap
	End    *End
}

// DamageError reports that the bytes of an audit file differ from the bytes that were written.
type DamageError struct {
	Offset int64 // position of the faulty frame, in bytes
	Err    error
}

func (e *DamageError) Error() string { return fmt.Sprintf("damaged at byte %d: %v", e.Offset, e.Err) }
func (e *DamageError) Unwrap() error { return e.Err }

// TornError reports that an audit file ends inside a frame (entry), because the file's writer was killed or is still
// writing. All bytes of the audit file before the position Offset are intact.
type TornError struct{ Offset int64 }

func (e *TornError) Error() string { return fmt.Sprintf("ends within the frame at byte %d", e.Offset) }

// errChecksum and errTruncated report that a single frame (entry) of an audit file has a wrong checksum or no end.
var (
	errChecksum  = errors.New("checksum mismatch")
	errTruncated = errors.New("truncated")
)

// castagnoli returns the table of CRC-32C, a checksum that processors compute in hardware.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// shortSum returns a checksum of the kind and the length of a frame (entry) in an audit file. Without the checksum of
// kind and length, a reader could mistake a damaged length for a file that ends early.
func shortSum(head []byte) uint16 {
	sum := crc32.Checksum(head, castagnoli())
	return uint16(sum>>16) ^ uint16(sum)
}
