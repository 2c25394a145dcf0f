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
	"capper/internal/ids"
	"capper/internal/objects"
	"capper/internal/segments/ingest/format"
)

// Config is the configuration for reading the inputs of a build. The zero Config is usable.
type Config struct {
	S3    objects.S3Config // for inputs named s3://…
	Stdin io.Reader        // for the input "-"; nil: it is empty
	// Scheme is the kind and hash key of the ids in the inputs. If Scheme is nil, the ids are dense (32-bit integers).
	Scheme *ids.Scheme
	// If Names is true, the build keeps the data for converting user numbers back to ids.
	Names bool
	// MaxBadRows limits the bad rows that a reader skips and counts. Above this limit, Check returns an error.
	MaxBadRows Tolerance
	// The reader calls the function BadRows with all bad rows of a block, in any order, from several goroutines. If
	// BadRows is nil, the reader does not call it.
	BadRows func([]format.Bad)
	// Workers is the number of concurrent parsers. If Workers is 0, each CPU core has one parser.
	Workers int
	// The reader calls the function Progress when it opens and reads files, from several goroutines. The argument
	// "total" grows by a file's known size, and the argument "read" grows by the number of bytes read. If Progress is
	// nil, the reader does not call it.
	Progress format.Progress
	// Now is the current time, for computing the age of files. If Now is zero, NewReader uses the clock.
	Now time.Time
}

func (c *Config) kind() ids.Kind {
	if c.Scheme == nil {
		return ids.Dense
	}
	return c.Scheme.Kind()
}

// The struct "reader" reads input files into sets of users. Each method of a reader uses all workers, so the caller
// must not call two methods at the same time.
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

// NewReader returns a reader of input files with the given configuration.
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
	r.buffers.New = func() any { b := make([]byte, 0, format.HeadBytes); return &b }
	return r
}

// The method Reports returns a report for each file that has been read, in order.
func (r *reader) Reports() []FileReport { return r.reports }

// LeftOut returns the files that match a pattern but that the reader skipped, because their names are not those of data
// files: hidden files, _SUCCESS, .crc.
func (r *reader) LeftOut() []string { return r.leftOut }

// Check returns a *BadRowsError if the inputs had more bad rows than the build tolerates, or if all rows of a file are
// bad. A reader does not stop at a bad row, because a report should contain all bad rows. The caller of a reader must
// therefore call Check before it uses the sets that the reader returned.
func (r *reader) Check() error {
	refused := r.cfg.MaxBadRows.refuses(r.reports)
	if len(refused) == 0 && (r.cfg.MaxBadRows.Share > 0 || r.bad.count <= r.cfg.MaxBadRows.Rows) {
		return nil
	}
	return &BadRowsError{Count: r.bad.count, Tolerated: r.cfg.MaxBadRows, Files: refused,
		Samples: r.bad.first(r.fileSeen)}
}

// BadRows returns the number of bad rows that the reader has found so far, and the first of these rows.
func (r *reader) BadRows() (int64, []format.Bad) { return r.bad.count, r.bad.first(r.fileSeen) }

// ReadIDs reads the ids of the inputs into one set.
func (r *reader) ReadIDs(ctx context.Context, inputs []Input) (*bitmap.Set, error) {
	set := new(bitmap.Set)
	return set, r.read(ctx, inputs, &oneSet{set: set})
}

// ReadTable reads input files whose rows have an id and the name of a segment. If the argument "known" is not nil, a
// row is bad if its segment name is not in "known". If the argument "known" is nil, ReadTable allows every valid
// segment name.
func (r *reader) ReadTable(ctx context.Context, inputs []Input, known []string) (map[string]*bitmap.Set, error) {
	t := newTable(known)
	if err := r.read(ctx, inputs, t); err != nil {
		return nil, err
	}
	return t.bySegment(), nil
}

// The method "read" reads all files of the inputs, several files in parallel, and passes the parsed rows to a
// destination.
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
	pool := startPool(r.cfg.Workers, keep, &r.cfg, to, &r.buffers)
	reports := make([]FileReport, len(files))
	faults := make([]error, len(files))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(r.atOnce(files), len(files)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(files) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				one := &fileReader{reader: r, file: files[i], index: r.fileSeen + i, pool: pool, to: to}
				if reports[i], faults[i] = one.read(ctx); faults[i] != nil {
					cancel() // the result will not be used
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

// s3AtOnce is the number of S3 objects that a reader reads at the same time. The number s3AtOnce is high, because most
// of the time for reading a small object passes before the first byte arrives.
const s3AtOnce = 32

// The method atOnce returns the number of files that the reader may read in parallel.
func (r *reader) atOnce(files []file) int {
	for _, f := range files {
		if r.files(f.name) == objects.Files(r.s3) {
			return max(r.cfg.Workers, s3AtOnce)
		}
	}
	return r.cfg.Workers
}

// InputError reports that an input file is missing, damaged, or of another kind than stated. For a fault of the storage
// or of the connection, the error is not an InputError.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

// inputFault wraps a fault of an input file in an InputError, and returns a fault of the storage or the connection
// unchanged.
func inputFault(err error) error {
	var storage *objects.StorageError
	if errors.As(err, &storage) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return err
	}
	return &InputError{err}
}

// firstFault returns the fault that made parallel work fail, instead of a cancellation that this fault caused.
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
