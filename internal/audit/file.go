package audit

import (
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"capper/internal/capping"
)

// Format is the version of files that is written, and the only one that is read.
const Format = 1

// magic begins a file.
const magic = "capaudit"

// The kinds of frames. Their numbers are stored.
const (
	frameHeader byte = 1
	frameRecord byte = 2
	frameGap    byte = 3
	frameEnd    byte = 4
)

// The bounds of a file, which a reader believes no byte beyond.
const (
	// MaxFrame is the most bytes of a frame's payload: above what a call of ten million
	// users who are scattered over all ids takes.
	MaxFrame = 64 << 20
	// MaxText is the most bytes of a text in a record, such as an expression.
	MaxText = 1 << 20
)

// Header begins a file.
type Header struct {
	Instance string // who writes it
	Number   uint64 // the file's, of those of the instance, from 1
	Begun    capping.Instant
	First    uint64        // the Sequence of the first record, lost ones included
	Widening time.Duration // by how much rolling windows are longer than limits say, see capping.Widening
}

// Gap is records that were not kept.
type Gap struct {
	Lost     uint64          // so many
	From, To capping.Instant // of their calls
}

// End ends a file that was closed: one without it was open when its writer died, or is open still.
type End struct {
	Records uint64 // in the file
	Last    uint64 // the Sequence of the last one, lost ones included; that before the first, of none
	// Recovered: the writer died, and who came after him closed the file. Calls of his last
	// second may be missing.
	Recovered bool
	Closed    capping.Instant // Recovered: when that was. Calls that are missing ended before
}

// Frame is what stands in a file behind its header: exactly one of them is not nil.
type Frame struct {
	Record *Record
	Gap    *Gap
	End    *End
}

// DamageError is that a file's bytes are not what was written.
type DamageError struct {
	Offset int64 // where the faulty frame begins
	Err    error
}

func (e *DamageError) Error() string { return fmt.Sprintf("damaged at byte %d: %v", e.Offset, e.Err) }
func (e *DamageError) Unwrap() error { return e.Err }

// TornError is that a file ends within a frame, as one does whose writer was killed, or
// writes still. What is before Offset is whole.
type TornError struct{ Offset int64 }

func (e *TornError) Error() string { return fmt.Sprintf("ends within the frame at byte %d", e.Offset) }

// Faults of frames.
var (
	errChecksum  = errors.New("checksum mismatch")
	errTruncated = errors.New("truncated")
)

// castagnoli is the table of CRC-32C, which processors compute by themselves.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// shortSum is the check of a frame's kind and length, so that a length that is not what
// was written is not taken for a file that ends early.
func shortSum(head []byte) uint16 {
	sum := crc32.Checksum(head, castagnoli())
	return uint16(sum>>16) ^ uint16(sum)
}
