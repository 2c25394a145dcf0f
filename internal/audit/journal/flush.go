package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// A writer writes audit files to the journal's spool directory. After a failed write to an audit file, the writer
// repeats the write at the same file position. Until the write succeeds, readers of the audit file see only the records
// that reached the disk earlier.
type writer struct {
	room
	file     *os.File
	good     int64     // bytes of the file that are on the disk
	cut      cut       // frames that are not on the disk yet
	before   time.Time // all earlier records are in the cut or on the disk
	spare    []byte
	policies map[string][]byte // by version; written before the next records
}

// keptBuffer is the maximum size, in bytes, of a buffer that the writer of audit files keeps for the next flush. The
// writer frees larger buffers.
const keptBuffer = 16 << 20

// The method settle waits until the tape (the queue of records in memory) contains all records that are older than the
// call of settle. The result "before" of the method settle is the time of the call, or zero if the method returns an
// error.
func (j *Journal) settle(ctx context.Context) (before time.Time, err error) {
	before = j.Clock()
	if err := j.beside.wait(ctx); err != nil {
		return time.Time{}, err
	}
	return before, nil
}

// The method flush writes the records on the tape (the queue of records in memory) to the disk. The tape must contain
// all records that are older than the time "before". The zero time means "unknown". If the argument "end" is true, the
// method flush also ends the audit file.
func (j *Journal) flush(before time.Time, end bool) error {
	j.flushing.Lock()
	defer j.flushing.Unlock()
	w := &j.writing
	for {
		leftOver := len(w.cut.bytes) > 0
		if !leftOver {
			w.before = before
			w.cut = j.tape.take(end, j.Roll, w.spare)
			w.spare = nil
		}
		last := w.cut.sealed || w.cut.number == 0
		err := j.write(w)
		if j.state.flushed(w.before, err) {
			j.deliverSoon()
		}
		if err != nil || !leftOver && (last || !end) {
			return err
		}
	}
}

// The method write appends the next piece of an audit file (the cut) to the file on the disk.
func (j *Journal) write(w *writer) error {
	if len(w.cut.bytes) == 0 && len(w.policies) == 0 {
		return nil
	}
	if err := w.enter(true); err != nil {
		return fmt.Errorf("write the audit: %w", err)
	}
	if err := w.writePolicies(); err != nil {
		return fmt.Errorf("write the audit: %w", err)
	}
	if len(w.cut.bytes) == 0 {
		return nil
	}
	if err := w.writeCut(); err != nil {
		return fmt.Errorf("write the audit: %w", err)
	}
	j.waiting.Add(int64(len(w.cut.bytes)))
	j.tape.written()
	if cap(w.cut.bytes) <= keptBuffer {
		w.spare = w.cut.bytes[:0]
	}
	sealed := w.cut.sealed
	w.cut = cut{}
	if sealed {
		j.carrier.add(w.close())
	}
	return nil
}

func (w *writer) writePolicies() error {
	for version, text := range w.policies {
		if err := w.store(version+policyExtension, text); err != nil {
			return err
		}
		delete(w.policies, version)
	}
	return nil
}

func (w *writer) writeCut() error {
	if w.file == nil {
		file, err := os.OpenFile(w.path(fileName(w.cut.number)), os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return err
		}
		if err := syncDirectory(w.dir); err != nil {
			return errors.Join(err, file.Close())
		}
		w.file = file
	}
	_, err := w.file.WriteAt(w.cut.bytes, w.good)
	if err == nil {
		err = w.file.Sync()
	}
	if err != nil {
		_ = w.file.Truncate(w.good) // removes an incomplete frame
		_ = w.file.Close()          // the next write opens the file again
		w.file = nil
		return err
	}
	w.good += int64(len(w.cut.bytes))
	return nil
}

// The method close closes the audit file of the writer, and returns the name and the size of the file.
func (w *writer) close() (name string, size int64) {
	name, size = filepath.Base(w.file.Name()), w.good
	_ = w.file.Close() // the contents are on the disk already
	w.file, w.good = nil, 0
	return name, size
}
