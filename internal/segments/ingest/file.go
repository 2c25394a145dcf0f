package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"capper/internal/bitmap"
	"capper/internal/segments/ingest/format"
)

// FileReport describes the content of one input file for the report of a build.
type FileReport struct {
	File   string `json:"file"`
	Format Format `json:"format"`
	// Column is the name of the id column, or its number if the file has no header. For text files without a header and
	// for bitmaps, Column is empty.
	Column string `json:"column,omitempty"`
	// In a table, NameColumn is the name or number of the column with the names of segments or sets.
	NameColumn string `json:"name_column,omitempty"`
	Rows       int64  `json:"rows"` // good rows; for a bitmap, the number of ids
	// DistinctIDs is the number of different ids. If DistinctEstimated is true, DistinctIDs is an estimate with an
	// error of a few per cent.
	DistinctIDs       int64  `json:"distinct_ids"`
	DistinctEstimated bool   `json:"distinct_estimated,omitempty"`
	Bad               int64  `json:"bad_rows,omitempty"` // number of lines of all bad rows
	Header            string `json:"header,omitempty"`   // the first row, if it is a header
	// Multiline describes rows of CSV and TSV files that span several lines. If the file has no such row, Multiline is
	// nil.
	Multiline *format.Multiline `json:"multiline,omitempty"`
	// ChangedAt is the time of the last write to the file, or nil if this time is unknown.
	ChangedAt *time.Time `json:"changed_at,omitempty"`
}

// fileReader reads one input file.
type fileReader struct {
	reader *reader
	file   file
	index  int // index of the file among all files of the reader
	pool   *pool
	to     destination

	good     atomic.Int64    // number of good rows
	bad      atomic.Int64    // number of bad lines
	distinct counter[uint32] // counts distinct dense ids
	images   counter[uint64] // counts distinct images of other ids
	header   string
	column   string // column of the ids
	names    string // column of a table's names

	mu        sync.Mutex
	multiline format.Multiline
	changedAt *time.Time
}

func (f *fileReader) read(ctx context.Context) (FileReport, error) {
	kind, err := f.readContent(ctx)
	if err != nil {
		return FileReport{}, fmt.Errorf("%s: %w", f.file.name, err)
	}
	report := FileReport{
		File: f.file.name, Format: kind, Column: f.column, NameColumn: f.names, Rows: f.good.Load(),
		Bad: f.bad.Load(), Header: f.header, ChangedAt: f.changedAt,
	}
	count, exact := f.distinct.Count()
	if f.reader.cfg.Scheme != nil {
		count, exact = f.images.Count()
	}
	report.DistinctIDs, report.DistinctEstimated = count, !exact
	if kind == roaring {
		report.DistinctIDs = report.Rows
	}
	if f.multiline.Rows > 0 {
		report.Multiline = &f.multiline
	}
	return report, nil
}

func (f *fileReader) readContent(ctx context.Context) (Format, error) {
	src, err := format.Open(ctx, f.reader.opener(f.file.name), f.file.name, f.reader.cfg.Progress)
	if err != nil {
		return "", err
	}
	defer src.Close()
	f.changedAt = src.ChangedAt()
	head, err := src.Head(4096)
	if err != nil {
		return "", err
	}
	reader, known := readerOf(f.file, head)
	if err := format.CheckKind(head, reader.magic); err != nil {
		return "", err
	}
	if !known {
		return "", fmt.Errorf("unknown format %q", f.file.input.Format)
	}
	return reader.format, reader.read(f, ctx, src)
}

func (f *fileReader) readDelimited(ctx context.Context, src *format.File, kind Format) error {
	if err := src.SkipBOM(); err != nil {
		return err
	}
	head, err := src.Head(format.HeadBytes)
	if err != nil {
		return err
	}
	if len(head) == 0 {
		return nil // an empty part of an export
	}
	opened, err := format.OpenDelimited(head, f.file.input.delimited(kind, f.to.isTable(), f.reader.cfg.Scheme))
	if err != nil {
		return err
	}
	f.column, f.names, f.header = opened.Column, opened.Names, opened.Header
	if opened.Multiline.Rows > 0 {
		f.multiline.Add(opened.Multiline)
	}
	if _, err := src.Discard(opened.HeaderBytes); err != nil {
		return err
	}
	return f.readBlocks(ctx, src, 1+opened.HeaderLines, opened.Syntax())
}

func (f *fileReader) readNDJSON(ctx context.Context, src *format.File) error {
	if err := src.SkipBOM(); err != nil {
		return err
	}
	f.column = cmp.Or(f.file.input.IDColumn, "user_id")
	if f.to.isTable() {
		f.names = cmp.Or(f.file.input.SegmentColumn, "segment")
	}
	return f.readBlocks(ctx, src, 1, format.NDJSON(f.column, f.names, f.reader.cfg.Scheme))
}

// readParquet reads a Parquet file, several row groups in parallel.
func (f *fileReader) readParquet(ctx context.Context, src *format.File) error {
	from, size, err := src.Seekable()
	if err != nil {
		return err
	}
	in := f.file.input
	opened, err := format.OpenParquet(from, size, in.IDColumn, in.SegmentColumn, f.to.isTable(),
		f.reader.cfg.kind())
	if err != nil {
		return err
	}
	f.column, f.names = opened.Column(), opened.NameColumn()
	faults := make([]error, opened.Groups())
	var pending sync.WaitGroup
	for i := range faults {
		err = f.pool.do(ctx, &pending, func(w *worker) {
			w.block.Reset()
			faults[i] = opened.ReadGroup(ctx, i, w.block, func() { f.take(w) })
		})
		if err != nil {
			break
		}
	}
	pending.Wait()
	return errors.Join(append(faults, err, src.CheckLength())...)
}

// maxRoaringBytes is the maximum number of bytes that readRoaring reads from a bitmap file. maxRoaringBytes is larger
// than the largest bitmap of 32-bit ids; bitmap.Read checks the exact limit.
const maxRoaringBytes = 1 << 30

// readRoaring reads a bitmap in the portable roaring format for 32-bit ids.
func (f *fileReader) readRoaring(_ context.Context, src *format.File) error {
	raw, err := io.ReadAll(io.LimitReader(src, maxRoaringBytes))
	if err != nil {
		return err
	}
	b, err := bitmap.Read(raw)
	if err != nil {
		return fmt.Errorf("read the bitmap: %w", err)
	}
	f.good.Add(int64(b.Cardinality()))
	return f.to.addBitmap(b)
}

// The method "take" passes the rows in a worker's block to the worker's sink (receiver of parsed rows), and empties the
// block.
func (f *fileReader) take(w *worker) {
	b := w.block
	w.sink.add(b)
	if f.reader.cfg.Scheme == nil {
		w.scratch = f.distinct.Add(b.IDs, w.scratch)
	} else {
		w.images = f.images.Add(b.Images, w.images)
	}
	f.good.Add(int64(b.Rows()))
	f.bad.Add(b.BadLines)
	for i := range b.Bad {
		b.Bad[i].File = f.file.name
	}
	f.reader.bad.add(f.index, b.Bad, b.BadLines)
	if f.reader.cfg.BadRows != nil && len(b.Bad) > 0 {
		f.reader.cfg.BadRows(b.Bad)
	}
	if b.Multiline.Rows > 0 {
		f.mu.Lock()
		f.multiline.Add(b.Multiline)
		f.mu.Unlock()
	}
	b.Reset()
}
