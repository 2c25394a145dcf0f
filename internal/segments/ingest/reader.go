package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"capper/internal/bitmap"
	"capper/internal/objects"
)

// Config of a Reader. Every zero value is usable.
type Config struct {
	S3    objects.S3Config // for inputs named s3://…
	Stdin io.Reader        // for the input "-"; nil: it is empty
	// MaxBadRows are left out and counted instead of being an error.
	MaxBadRows Tolerance
	// BadRows is called with the bad rows of a block, all of them, in no order,
	// from several goroutines. Nil: nothing.
	BadRows func([]BadRow)
	// Workers parse at once. 0: one per core.
	Workers int
	// Progress is called as files are opened and read: total grows by a file's
	// size if that is known, read by the bytes read. From several goroutines. Nil: nothing.
	Progress func(read, total int64)
	// Now is what the age of files is measured by. Zero: the time of NewReader.
	Now time.Time
}

// Reader reads inputs into sets. Its methods are to be called one after the
// other; each uses all workers.
type Reader struct {
	cfg      Config
	s3       *objects.S3Files
	bad      tally
	fileSeen int
	reports  []FileReport

	shortfalls []string
	leftOut    []string
}

// FileReport is what was in one file.
type FileReport struct {
	File   string `json:"file"`
	Format Format `json:"format"`
	// Column that the ids were read from: its name, or its number where there is no header. Empty for text and bitmaps.
	Column string `json:"column,omitempty"`
	Rows   int64  `json:"rows"` // rows with an id; of a bitmap its ids
	// DistinctIDs of these rows; an estimate within some per cent when DistinctEstimated.
	DistinctIDs       int64  `json:"distinct_ids"`
	DistinctEstimated bool   `json:"distinct_estimated,omitempty"`
	Bad               int64  `json:"bad_rows,omitempty"` // in lines, where a row has several
	Header            string `json:"header,omitempty"`   // the first record, when it was taken for a header
	// Multiline rows of CSV and TSV; nil when there is none.
	Multiline *Multiline `json:"multiline,omitempty"`
	// ChangedAt is when the file was last written; absent when that is not known.
	ChangedAt *time.Time `json:"changed_at,omitempty"`
}

// NewReader returns a reader.
func NewReader(cfg Config) *Reader {
	if cfg.Workers <= 0 {
		cfg.Workers = runtime.GOMAXPROCS(0)
	}
	if cfg.Stdin == nil {
		cfg.Stdin = bytes.NewReader(nil)
	}
	if cfg.Now.IsZero() {
		cfg.Now = time.Now()
	}
	return &Reader{cfg: cfg, s3: objects.NewS3Files(cfg.S3)}
}

// Reports lists the files read so far, in order.
func (r *Reader) Reports() []FileReport { return r.reports }

// LeftOut lists the files that match a pattern but are no data by their names: hidden ones, _SUCCESS, .crc.
func (r *Reader) LeftOut() []string { return r.leftOut }

// Check returns a *BadRowsError when more rows were bad than are tolerated, or
// all rows of a file, else nil. Reading goes on over bad rows so that it can name
// them all: call Check before using what was read.
func (r *Reader) Check() error {
	refused := r.cfg.MaxBadRows.refuses(r.reports)
	if len(refused) == 0 && (r.cfg.MaxBadRows.Share > 0 || r.bad.count <= r.cfg.MaxBadRows.Rows) {
		return nil
	}
	return &BadRowsError{Count: r.bad.count, Tolerated: r.cfg.MaxBadRows, Files: refused, Samples: r.bad.first(r.fileSeen)}
}

// BadRows returns the number of bad rows so far and the first of them.
func (r *Reader) BadRows() (int64, []BadRow) { return r.bad.count, r.bad.first(r.fileSeen) }

// ReadIDs adds the ids of the inputs to one set.
func (r *Reader) ReadIDs(ctx context.Context, inputs []Input) (*bitmap.Set, error) {
	set := new(bitmap.Set)
	return set, r.read(ctx, inputs, &oneSet{set: set})
}

// ReadTable reads tables of ids and segment names. known restricts the names,
// others are bad rows then; nil allows every name that can be a segment's.
func (r *Reader) ReadTable(ctx context.Context, inputs []Input, known []string) (map[string]*bitmap.Set, error) {
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
		return inputFault(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	keep := maxSamples
	if r.cfg.BadRows != nil {
		keep = math.MaxInt
	}
	pool := startPool(r.cfg.Workers, keep, to)
	reports := make([]FileReport, len(files))
	faults := make([]error, len(files))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(r.atOnce(files), len(files)) {
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
func (r *Reader) atOnce(files []file) int {
	for _, f := range files {
		if r.files(f.name) == objects.Files(r.s3) {
			return max(r.cfg.Workers, s3AtOnce)
		}
	}
	return r.cfg.Workers
}

// InputError is an input that cannot be read: it is missing, damaged, or not
// what it is said to be. That it could not be reached, or not in time, is none.
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
	column string // that the ids were read from

	mu        sync.Mutex
	multiline Multiline
	distinct  distinct
	at        *time.Time // when the file was last written
}

func (j *job) run(ctx context.Context) (FileReport, error) {
	format, err := j.readFile(ctx)
	if err != nil {
		return FileReport{}, fmt.Errorf("%s: %w", j.file.name, err)
	}
	report := FileReport{File: j.file.name, Format: format, Rows: j.rows.Load(), Bad: j.bad.Load(), Header: j.header, ChangedAt: j.at}
	report.Column = j.column
	distinct, exact := j.distinct.count(report.Rows)
	report.DistinctIDs, report.DistinctEstimated = distinct, !exact
	if format == Roaring {
		report.DistinctIDs = report.Rows
	}
	if j.multiline.Rows > 0 {
		report.Multiline = &j.multiline
	}
	return report, nil
}

func (j *job) readFile(ctx context.Context) (Format, error) {
	src, err := j.reader.open(ctx, j.file)
	if err != nil {
		return "", err
	}
	defer src.Close()
	j.at = src.changedAt
	head, err := src.peek(4096)
	if err != nil {
		return "", err
	}
	format := formatOf(j.file)
	if format == Auto {
		format = sniff(head)
	}
	if err := foreignFault(head, format); err != nil {
		return "", err
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
func (j *job) done(w *worker) {
	j.rows.Add(int64(len(w.ids)))
	j.bad.Add(w.count)
	for i := range w.bad {
		w.bad[i].File = j.file.name
	}
	j.reader.bad.add(j.index, w.bad, w.count)
	if j.reader.cfg.BadRows != nil && len(w.bad) > 0 {
		j.reader.cfg.BadRows(w.bad)
	}
	w.seen = sketch{}
	w.seen.add(w.ids)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.distinct.add(w.ids, &w.seen)
	if w.multiline.Rows > 0 {
		j.multiline.add(w.multiline)
	}
}
