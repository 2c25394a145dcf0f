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

	"capper/internal/objects"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// source is an open file, decompressed.
type source struct {
	*bufio.Reader
	stored  *storedFile
	plain   *os.File // the file itself when it is local and not compressed, for formats that seek
	closers []func() error

	changedAt *time.Time // nil: not known
}

// open opens a file and looks through gzip and zstd, which it knows by their first bytes.
func (r *Reader) open(ctx context.Context, f file) (*source, error) {
	stored, err := r.stored(ctx, f)
	if err != nil {
		return nil, err
	}
	src := &source{stored: stored, closers: []func() error{stored.body.Close}}
	if at, ok := objects.ChangedAt(stored.body); ok {
		src.changedAt = &at
	}
	raw := bufio.NewReaderSize(stored, stored.bufferBytes())
	if err := src.unpack(raw, f.name); err != nil {
		return nil, errors.Join(err, src.Close())
	}
	return src, nil
}

// stored opens a file as it is stored.
func (r *Reader) stored(ctx context.Context, f file) (*storedFile, error) {
	s := &storedFile{ctx: ctx, body: io.NopCloser(r.cfg.Stdin), size: -1, progress: r.cfg.Progress}
	if f.name != Stdin {
		var err error
		if s.body, s.size, err = r.files(f.name).Open(ctx, f.name); err != nil {
			return nil, err
		}
	}
	if s.progress != nil && s.size > 0 {
		s.progress(0, s.size)
	}
	return s, nil
}

// unpack sets the reader of the decompressed content.
func (s *source) unpack(raw *bufio.Reader, name string) error {
	head, err := raw.Peek(4)
	if err != nil && err != io.EOF {
		return err
	}
	switch {
	case len(head) == 0 && name == Stdin:
		return errors.New("standard input is empty: did the program that writes it fail?")
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(raw)
		if err != nil {
			return fmt.Errorf("gzip: %w", err)
		}
		s.Reader = bufio.NewReaderSize(&unpacked{"gzip", z, s.stored}, 1<<20)
	case isZstd(head):
		z, err := zstd.NewReader(raw, zstd.WithDecoderMaxWindow(256<<20))
		if err != nil {
			return fmt.Errorf("zstd: %w", err)
		}
		s.closers = append(s.closers, func() error { z.Close(); return nil })
		s.Reader = bufio.NewReaderSize(&unpacked{"zstd", z, s.stored}, 1<<20)
	default:
		if _, packing := withoutPacking(name); packing != "" {
			return fmt.Errorf("the name says %s, the content is not (%d bytes, beginning with %q)", packing, s.stored.size, head)
		}
		s.Reader = raw
		if local, ok := s.stored.body.(*os.File); ok && s.stored.size >= 0 {
			s.plain = local
		}
	}
	return nil
}

// isZstd knows a frame of zstd, and the skippable frame that some writers begin with.
func isZstd(head []byte) bool {
	return bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}) ||
		len(head) == 4 && head[0]&0xf0 == 0x50 && bytes.Equal(head[1:], []byte{0x2a, 0x4d, 0x18})
}

// peek returns up to n bytes from the beginning, fewer when the file is shorter.
func (s *source) peek(n int) ([]byte, error) {
	head, err := s.Peek(n)
	if err != nil && err != io.EOF && !errors.Is(err, bufio.ErrBufferFull) {
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
		return s.plain, s.stored.size, nil
	}
	spool, err := os.CreateTemp("", "segmentbuild-*")
	if err != nil {
		return nil, 0, &objects.StorageError{Err: err}
	}
	s.closers = append(s.closers, func() error { return errors.Join(spool.Close(), os.Remove(spool.Name())) })
	size, err := io.Copy(&spooling{spool}, s.Reader)
	return spool, size, err
}

// spooling tells the faults of writing a copy, such as a full disk, from those of what is copied.
type spooling struct{ to io.Writer }

// Write implements io.Writer.
func (s *spooling) Write(p []byte) (int, error) {
	n, err := s.to.Write(p)
	if err != nil {
		err = &objects.StorageError{Err: err}
	}
	return n, err
}
