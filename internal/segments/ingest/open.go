package ingest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"capper/internal/segments"
)

// source is an open file, decompressed.
type source struct {
	*bufio.Reader
	plain   *os.File // the file itself when it is local and not compressed, for formats that seek
	closers []func() error

	changedAt *time.Time // nil: not known
}

// open opens a file and looks through gzip and zstd, which it knows by their first bytes.
func (r *Reader) open(ctx context.Context, f file) (*source, error) {
	var body io.ReadCloser = io.NopCloser(r.cfg.Stdin)
	size := int64(-1)
	if f.name != Stdin {
		var err error
		if body, size, err = r.files(f.name).Open(ctx, f.name); err != nil {
			return nil, err
		}
	}
	src := &source{closers: []func() error{body.Close}}
	if at, ok := segments.ChangedAt(body); ok {
		src.changedAt = &at
	}
	if r.cfg.Progress != nil && size > 0 {
		r.cfg.Progress(0, size)
	}
	counted := &countingReader{ctx: ctx, from: body, progress: r.cfg.Progress}
	raw := bufio.NewReaderSize(counted, 1<<20)
	head, err := raw.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, src.Close())
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(raw)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("gzip: %w", err), src.Close())
		}
		src.Reader = bufio.NewReaderSize(named{"gzip", z}, 1<<20)
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(raw, zstd.WithDecoderMaxWindow(256<<20))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("zstd: %w", err), src.Close())
		}
		src.closers = append(src.closers, func() error { z.Close(); return nil })
		src.Reader = bufio.NewReaderSize(named{"zstd", z}, 1<<20)
	default:
		src.Reader = raw
		if local, ok := body.(*os.File); ok && size >= 0 {
			src.plain = local
		}
	}
	return src, nil
}

// peek returns up to n bytes from the beginning, fewer when the file is shorter.
func (s *source) peek(n int) ([]byte, error) {
	head, err := s.Peek(n)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return nil, err
	}
	return head, nil
}

// Close releases the file and all that was opened for it.
func (s *source) Close() error {
	var faults []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		faults = append(faults, s.closers[i]())
	}
	return errors.Join(faults...)
}

// seekable returns the content as a file that can be read at any place: the
// file itself, or else a copy in a temporary file.
func (s *source) seekable() (*os.File, int64, error) {
	if s.plain != nil {
		stat, err := s.plain.Stat()
		if err != nil {
			return nil, 0, err
		}
		return s.plain, stat.Size(), nil
	}
	spool, err := os.CreateTemp("", "segmentbuild-*")
	if err != nil {
		return nil, 0, err
	}
	s.closers = append(s.closers, func() error { return errors.Join(spool.Close(), os.Remove(spool.Name())) })
	size, err := io.Copy(spool, s.Reader)
	return spool, size, err
}

// named adds the compression to errors, and takes an input that ends early for what it is.
type named struct {
	name string
	from io.Reader
}

func (n named) Read(p []byte) (int, error) {
	got, err := n.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%s: %w", n.name, err)
	}
	return got, err
}

type countingReader struct {
	ctx      context.Context
	from     io.Reader
	progress func(read, total int64)
}

func (c *countingReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.from.Read(p)
	if c.progress != nil && n > 0 {
		c.progress(int64(n), 0)
	}
	return n, err
}
