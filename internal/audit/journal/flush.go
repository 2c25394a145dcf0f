package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// writer writes audit files to the journal's spool directory. After a failed write to an audit file, the writer tries
// again at the same file position. Until the write succeeds, other readers of the audit file see only the records
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

// keptBuffer is the maximum size in bytes of a buffer that the writer of audit files keeps for the next flush instead
// of freeing it.
const keptBuffer = 16 << 20

// settle waits until the tape (the queue of records in memory) contains all records that are older than the call of
// settle. settle returns the time of the call. If settle() returns an error, the time that it returns is zero.
func (j *Journal) settle(ctx context.Context) (before time.Time, err error) {
	before = j.Clock()
	if err := j.beside.wait(ctx); err != nil {
		return time.Time{}, err
	}
	return before, nil
}

// flush writes the records on the tape (the queue of records in memory) to the disk. The argument "before" is a time:
// the tape (the queue of records in memory) contains all earlier records. The zero time means "unknown". If the
// argument "end" is true, flush() also ends the audit file.
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

// write appends the cut (the next piece of an audit file) to the file on the disk.
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
		_ = w.file.Truncate(w.good) // removes half a frame, which a reader would find torn
		_ = w.file.Close()          // the next write opens the file again
		w.file = nil
		return err
	}
	w.good += int64(len(w.cut.bytes))
	return nil
}

// close closes the audit file that the writer was writing, and returns its name and size.
func (w *writer) close() (name string, size int64) {
	name, size = filepath.Base(w.file.Name()), w.good
	_ = w.file.Close() // the contents are on the disk already
	w.file, w.good = nil, 0
	return name, size
}
