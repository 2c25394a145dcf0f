package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"

	"capper/internal/segments"
)

// Config of a Reader. Every zero value is usable.
type Config struct {
	S3    segments.S3Config // for inputs named s3://…
	Stdin io.Reader         // for the input "-"; nil: it is empty
	// MaxBadRows are tolerated over all inputs together, left out and counted.
	MaxBadRows int64
	// Workers parse at once. 0: one per core.
	Workers int
	// Progress is called as files are opened and read: total grows by a file's
	// size if that is known, read by the bytes read. From several goroutines. Nil: nothing.
	Progress func(read, total int64)
}

// Reader reads inputs into sets. Its methods are to be called one after the
// other; each uses all workers.
type Reader struct {
	cfg      Config
	s3       *segments.S3Files
	bad      tally
	fileSeen int
	reports  []FileReport
}

// FileReport is what was in one file.
type FileReport struct {
	File   string `json:"file"`
	Format Format `json:"format"`
	Rows   int64  `json:"rows"` // rows with an id; of a bitmap its ids
	Bad    int64  `json:"bad_rows,omitempty"`
	Header string `json:"header,omitempty"` // the first record, when it was taken for a header
}

// NewReader returns a reader.
func NewReader(cfg Config) *Reader {
	if cfg.Workers <= 0 {
		cfg.Workers = runtime.GOMAXPROCS(0)
	}
	if cfg.Stdin == nil {
		cfg.Stdin = bytes.NewReader(nil)
	}
	return &Reader{cfg: cfg, s3: segments.NewS3Files(cfg.S3)}
}

// Reports lists the files read so far, in order.
func (r *Reader) Reports() []FileReport { return r.reports }

// Check returns a *BadRowsError when more rows were bad than are tolerated,
// else nil. Reading goes on over bad rows so that it can name them all: call
// Check before using what was read.
func (r *Reader) Check() error {
	if r.bad.count <= r.cfg.MaxBadRows {
		return nil
	}
	return &BadRowsError{Count: r.bad.count, Tolerated: r.cfg.MaxBadRows, Samples: r.bad.first(r.fileSeen)}
}

// BadRows returns the number of bad rows so far and the first of them.
func (r *Reader) BadRows() (int64, []BadRow) { return r.bad.count, r.bad.first(r.fileSeen) }

// ReadIDs adds the ids of the inputs to one set.
func (r *Reader) ReadIDs(ctx context.Context, inputs []Input) (*segments.Set, error) {
	set := new(segments.Set)
	return set, r.read(ctx, inputs, &oneSet{set: set})
}

// ReadTable reads tables of ids and segment names. known restricts the names,
// others are bad rows then; nil allows every name that can be a segment's.
func (r *Reader) ReadTable(ctx context.Context, inputs []Input, known []string) (map[string]*segments.Set, error) {
	t := newTable(known)
	if err := r.read(ctx, inputs, t); err != nil {
		return nil, err
	}
	return t.bySegment(), nil
}

// read reads all files of the inputs, several at once.
func (r *Reader) read(ctx context.Context, inputs []Input, to destination) error {
	files, err := r.expand(ctx, inputs)
	if err != nil {
		return &InputError{err}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pool := startPool(r.cfg.Workers, to)
	reports := make([]FileReport, len(files))
	faults := make([]error, len(files))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(r.cfg.Workers, len(files)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(files) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				job := &job{reader: r, file: files[i], index: r.fileSeen + i, pool: pool, table: to.isTable()}
				if reports[i], faults[i] = job.run(ctx); faults[i] != nil {
					cancel() // what has been read will not be used
				}
			}
		})
	}
	wg.Wait()
	pool.stop()
	r.fileSeen += len(files)
	r.reports = append(r.reports, reports...)
	return firstFault(ctx, faults)
}

// InputError is an input that cannot be read: it is missing, damaged, or not
// what it is said to be.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

// firstFault prefers what went wrong over what was given up because of it.
func firstFault(ctx context.Context, faults []error) error {
	var given error
	for _, err := range faults {
		if err != nil && !errors.Is(err, context.Canceled) {
			return &InputError{err}
		}
		given = errors.Join(given, err)
	}
	if given != nil {
		return given
	}
	return context.Cause(ctx)
}

// job is the reading of one file.
type job struct {
	reader *Reader
	file   file
	index  int
	pool   *pool
	table  bool
	rows   atomic.Int64
	bad    atomic.Int64
	header string
}

func (j *job) run(ctx context.Context) (FileReport, error) {
	format, err := j.readFile(ctx)
	if err != nil {
		return FileReport{}, fmt.Errorf("%s: %w", j.file.name, err)
	}
	return FileReport{File: j.file.name, Format: format, Rows: j.rows.Load(), Bad: j.bad.Load(), Header: j.header}, nil
}

func (j *job) readFile(ctx context.Context) (Format, error) {
	src, err := j.reader.open(ctx, j.file)
	if err != nil {
		return "", err
	}
	defer src.Close()
	format := formatOf(j.file)
	if format == Auto {
		head, err := src.peek(4096)
		if err != nil {
			return "", err
		}
		format = sniff(head)
	}
	switch format {
	case Text, CSV, TSV:
		return format, j.readDelimited(ctx, src, format)
	case NDJSON:
		return format, j.readNDJSON(ctx, src)
	case Parquet:
		return format, j.readParquet(ctx, src)
	case Roaring:
		return format, j.readRoaring(src)
	}
	return "", fmt.Errorf("unknown format %q", format)
}

// done records what a block held.
func (j *job) done(rows int, bad []BadRow, badCount int64) {
	j.rows.Add(int64(rows))
	j.bad.Add(badCount)
	for i := range bad {
		bad[i].File = j.file.name
	}
	j.reader.bad.add(j.index, bad, badCount)
}
