package journal

import (
	"slices"
	"sync"
	"time"

	"capper/internal/audit"
	"capper/internal/capping"
)

// A tape is the queue of encoded records in memory that the writer has not yet written to the disk. The tape also knows
// the state of the current audit file. The journal holds the lock of the tape (the queue of records) only while the
// journal copies a record.
type tape struct {
	instance string
	widening time.Duration
	ids      audit.IDs
	clock    func() time.Time
	waiting  func() int64 // bytes of files that wait for upload
	most     int64        // maximum for the bytes of waiting files

	mu       sync.Mutex
	encoder  *audit.Encoder // the encoder of the current file; nil: the next record begins a file
	number   uint64         // number of the current or last file
	next     uint64         // next sequence number
	begun    time.Time      // time when the file was begun
	size     int64          // bytes of the file, including pending ones
	pending  []byte
	since    time.Time // last time when pending was empty
	held     int64     // bytes from take that are not on the disk
	gap      audit.Gap // lost records that are not in the file yet
	records  uint64
	lost     uint64
	lastLost bool // set if the last record was lost
}

// The method append adds a record to the tape (the queue of records in memory). If the tape is full, the method drops
// the record, and counts it as lost.
func (t *tape) append(r *audit.Record) {
	size := r.SizeBound()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.full(size) {
		t.lose(r)
		return
	}
	// This code doubles the capacity. The built-in function append would grow it by a quarter only, and copy more
	// often.
	if before, need := len(t.pending), int(size); cap(t.pending)-before < need {
		t.pending = slices.Grow(t.pending, max(need, before))
	}
	before := len(t.pending)
	t.begin(r.At)
	t.closeGap()
	pending, _, err := t.encoder.AppendRecord(t.pending, r)
	t.pending, t.next = pending, t.encoder.Next()
	t.size += int64(len(t.pending) - before)
	if err != nil { // the record is too large or invalid
		t.lose(r)
		return
	}
	t.records++
	t.lastLost = false
}

// The method "full" reports whether a record of the given size would exceed the limit for the tape (queue of records in
// memory) or the disk space.
func (t *tape) full(size int64) bool {
	inMemory := int64(len(t.pending)) + t.held
	return inMemory > 0 && inMemory+size > maxPending || t.waiting()+inMemory+size > t.most
}

// The method begin begins a new audit file if no audit file is open.
func (t *tape) begin(at capping.Instant) {
	if len(t.pending) == 0 && t.held == 0 {
		t.since = t.clock()
	}
	if t.encoder != nil {
		return
	}
	t.number++
	t.begun, t.size = t.clock(), 0
	t.encoder, t.pending = audit.NewEncoder(t.pending, audit.Header{
		Instance: t.instance, Number: t.number, Begun: at, First: t.next, Widening: t.widening, IDs: t.ids,
	})
}

func (t *tape) lose(r *audit.Record) {
	if t.gap.Lost == 0 {
		t.gap.From, t.gap.To = r.At, r.At
	}
	t.gap.From, t.gap.To = min(t.gap.From, r.At), max(t.gap.To, r.At)
	t.gap.Lost++
	t.lost++
	t.lastLost = true
}

// closeGap appends a frame (entry) with the number of lost records, if records were lost since the last frame.
func (t *tape) closeGap() {
	if t.gap.Lost > 0 {
		t.pending = t.encoder.AppendGap(t.pending, t.gap)
		t.gap = audit.Gap{}
	}
}

// A cut is a piece of an audit file, which the writer appends to the file on the disk in one step.
type cut struct {
	number uint64
	bytes  []byte
	sealed bool // set if the bytes contain the end of the file
}

// The method take removes frames (file entries) from the tape (the queue of records in memory), for the next write to
// the disk. If the argument "end" is true, or the audit file is older than the argument "roll", the method also ends
// the file. The tape uses the memory of the argument "spare" for later audit records.
func (t *tape) take(end bool, roll time.Duration, spare []byte) cut {
	t.mu.Lock()
	defer t.mu.Unlock()
	if end && t.gap.Lost > 0 {
		t.begin(t.gap.From)
	}
	if t.encoder == nil {
		return cut{}
	}
	end = end || t.size >= maxFile || t.clock().Sub(t.begun) >= roll
	if end {
		t.closeGap()
		t.pending = t.encoder.AppendEnd(t.pending)
		t.next = t.encoder.Next()
		t.encoder = nil
	}
	c := cut{t.number, t.pending, end}
	t.held, t.pending = int64(len(c.bytes)), spare[:0]
	return c
}

// The method "written" notes that the frames (file entries) from the last call of take are on the disk. The memory of
// written frames no longer counts as memory of the tape (the queue of records).
func (t *tape) written() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = 0
	t.since = t.clock()
}

// The type "counts" holds the numbers of waiting and lost records on the tape (the queue of records in memory), for the
// status of the audit.
type counts struct {
	records, lost uint64
	losing        bool
	behind        time.Duration // age of the oldest record that is not on the disk
}

func (t *tape) counts() counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := counts{records: t.records, lost: t.lost, losing: t.lastLost}
	if len(t.pending) > 0 || t.held > 0 {
		c.behind = max(t.clock().Sub(t.since), 0)
	}
	return c
}
