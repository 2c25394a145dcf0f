package ingest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/segments/ingest/format"
)

// Config of a Reader. Every zero value is usable.
type Config struct {
	S3    objects.S3Config // for inputs named s3://…
	Stdin io.Reader        // for the input "-"; nil: it is empty
	// MaxBadRows are left out and counted instead of being an error.
	MaxBadRows Tolerance
	// BadRows is called with the bad rows of a block, all of them, in no order,
	// from several goroutines. Nil: nothing.
	BadRows func([]format.Bad)
	// Workers parse at once. 0: one per core.
	Workers int
	// Progress is called as files are opened and read: total grows by a file's
	// size if that is known, read by the bytes read. From several goroutines. Nil: nothing.
	Progress format.Progress
	// Now is what the age of files is measured by. Zero: the time of NewReader.
	Now time.Time
}

// reader reads inputs into sets. Its methods are to be called one after the
// other; each uses all workers.
type reader struct {
	cfg      Config
	s3       *objects.S3Files
	bad      badRows
	buffers  sync.Pool
	fileSeen int
	reports  []FileReport

	shortfalls []string
	leftOut    []string
}

// NewReader returns a reader.
func NewReader(cfg Config) *reader {
	if cfg.Workers <= 0 {
		cfg.Workers = runtime.GOMAXPROCS(0)
	}
	if cfg.Stdin == nil {
		cfg.Stdin = bytes.NewReader(nil)
	}
	if cfg.Now.IsZero() {
		cfg.Now = time.Now()
	}
	r := &reader{cfg: cfg, s3: objects.NewS3Files(cfg.S3)}
	r.buffers.New = func() any { b := make([]byte, 0, blockBytes+64); return &b }
	return r
}

// Reports lists the files read so far, in order.
func (r *reader) Reports() []FileReport { return r.reports }

// LeftOut lists the files that match a pattern but are not data by their names: hidden ones, _SUCCESS, .crc.
func (r *reader) LeftOut() []string { return r.leftOut }

// Check returns a *BadRowsError when more rows were bad than are tolerated, or
// all rows of a file, else nil. Reading goes on over bad rows so that it can name
// them all: call Check before using what was read.
func (r *reader) Check() error {
	refused := r.cfg.MaxBadRows.refuses(r.reports)
	if len(refused) == 0 && (r.cfg.MaxBadRows.Share > 0 || r.bad.count <= r.cfg.MaxBadRows.Rows) {
		return nil
	}
	return &BadRowsError{Count: r.bad.count, Tolerated: r.cfg.MaxBadRows, Files: refused,
		Samples: r.bad.first(r.fileSeen)}
}

// BadRows returns the number of bad rows so far and the first of them.
func (r *reader) BadRows() (int64, []format.Bad) { return r.bad.count, r.bad.first(r.fileSeen) }

// ReadIDs adds the ids of the inputs to one set.
func (r *reader) ReadIDs(ctx context.Context, inputs []Input) (*bitmap.Set, error) {
	set := new(bitmap.Set)
	return set, r.read(ctx, inputs, &oneSet{set: set})
}

// ReadTable reads tables of ids and segment names. known restricts the names,
// others are bad rows then; nil allows every name that can be a segment's.
func (r *reader) ReadTable(ctx context.Context, inputs []Input, known []string) (map[string]*bitmap.Set, error) {
	t := newTable(known)
	if err := r.read(ctx, inputs, t); err != nil {
		return nil, err
	}
	return t.bySegment(), nil
}

// read reads all files of the inputs, several at once.
func (r *reader) read(ctx context.Context, inputs []Input, to destination) error {
	files, err := r.expand(ctx, inputs)
	if err != nil {
		return inputFault(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	keep := maxSamples
	if r.cfg.BadRows != nil {
		keep = math.MaxInt
	}
	pool := startPool(r.cfg.Workers, keep, to, &r.buffers)
	reports := make([]FileReport, len(files))
	faults := make([]error, len(files))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(r.atOnce(files), len(files)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(files) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				one := &fileReader{reader: r, file: files[i], index: r.fileSeen + i, pool: pool, to: to}
				if reports[i], faults[i] = one.read(ctx); faults[i] != nil {
					cancel() // what has been read will not be used
				}
			}
		})
	}
	wg.Wait()
	pool.stop()
	r.fileSeen += len(files)
	r.reports = append(r.reports, reports...)
	if err := firstFault(ctx, faults); err != nil {
		return err
	}
	r.expect(inputs, files, reports)
	return nil
}

// s3AtOnce is how many objects are open at a time: most of what a small one
// takes is waiting for its first byte.
const s3AtOnce = 32

// atOnce is how many of the files are read at a time.
func (r *reader) atOnce(files []file) int {
	for _, f := range files {
		if r.files(f.name) == objects.Files(r.s3) {
			return max(r.cfg.Workers, s3AtOnce)
		}
	}
	return r.cfg.Workers
}

// InputError is an input that cannot be read: it is missing, damaged, or not
// what it is said to be. One that could not be reached, or not in time, is another error.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

// inputFault tells what is wrong with an input from what is wrong on the way to it.
func inputFault(err error) error {
	var storage *objects.StorageError
	if errors.As(err, &storage) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return err
	}
	return &InputError{err}
}

// firstFault prefers what went wrong over what was given up because of it.
func firstFault(ctx context.Context, faults []error) error {
	var given error
	for _, err := range faults {
		if err != nil && !errors.Is(err, context.Canceled) {
			return inputFault(err)
		}
		given = errors.Join(given, err)
	}
	if given != nil {
		return given
	}
	return context.Cause(ctx)
}
