package format

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"capper/internal/objects"
)

// Opener opens input files in their stored form, before decompression.
type Opener interface {
	// Open returns the bytes of a file and its announced length, or -1 if the length is unknown.
	Open(ctx context.Context, name string) (io.ReadCloser, int64, error)
}

// Stdin is the file name that stands for standard input.
const Stdin = "-"

// StandardInput is an Opener for standard input (the file name "-"). For every file name, the method Open returns the
// embedded reader.
type StandardInput struct{ io.Reader }

// Open implements Opener.
func (s StandardInput) Open(context.Context, string) (io.ReadCloser, int64, error) {
	return io.NopCloser(s.Reader), -1, nil
}

// HeadBytes is the maximum number of bytes that Head returns.
const HeadBytes = 1 << 20

// Progress is a function that readers of files call during reading to report their progress. The argument "read" is the
// number of newly read bytes, and the argument "total" is the growth of the expected total, in bytes.
type Progress func(read, total int64)

// A File is an open input file. Reading a File returns the decompressed content. A File is for one goroutine.
type File struct {
	*bufio.Reader
	stored  *storedFile
	plain   *os.File // for formats that seek: the file itself if it is local and uncompressed
	closers []func() error
}

// Open opens an input file, and decompresses gzip and zstd. Open recognises the compression by the first bytes of the
// file. The goroutine that reads the file calls the function "progress", which may be nil.
func Open(ctx context.Context, from Opener, name string, progress Progress) (*File, error) {
	body, size, err := from.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	if progress != nil && size > 0 {
		progress(0, size)
	}
	stored := &storedFile{ctx: ctx, body: body, size: size, progress: progress}
	f := &File{stored: stored, closers: []func() error{body.Close}}
	if err := f.unpack(bufio.NewReaderSize(stored, stored.bufferBytes()), name); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ChangedAt returns the time of the last write to the file, or nil if this time is unknown.
func (f *File) ChangedAt() *time.Time {
	if at, ok := objects.ChangedAt(f.stored.body); ok {
		return &at
	}
	return nil
}

// The method "unpack" looks at the first bytes of the file, and sets up a reader that returns the decompressed content.
func (f *File) unpack(raw *bufio.Reader, name string) error {
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
		f.Reader = bufio.NewReaderSize(&decompressed{"gzip", z, f.stored}, 1<<20)
	case isZstd(head):
		z, err := zstd.NewReader(raw, zstd.WithDecoderMaxWindow(256<<20))
		if err != nil {
			return fmt.Errorf("zstd: %w", err)
		}
		f.closers = append(f.closers, func() error { z.Close(); return nil })
		f.Reader = bufio.NewReaderSize(&decompressed{"zstd", z, f.stored}, 1<<20)
	default:
		if _, packing := WithoutPacking(name); packing != "" {
			return fmt.Errorf("the file name says %s, but the content has another format (%d bytes, beginning with %q)",
				packing,
				f.stored.size, head)
		}
		f.Reader = raw
		if local, ok := f.stored.body.(*os.File); ok && f.stored.size >= 0 {
			f.plain = local
		}
	}
	return nil
}

// isZstd reports whether the bytes are the beginning of a zstd frame, or of the skippable frame that some programs
// write first.
func isZstd(head []byte) bool {
	return bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}) ||
		len(head) == 4 && head[0]&0xf0 == 0x50 && bytes.Equal(head[1:], []byte{0x2a, 0x4d, 0x18})
}

// Head returns the next n bytes of the content, at most HeadBytes, without consuming them. If the rest of the file is
// shorter than n bytes, Head returns the rest.
func (f *File) Head(n int) ([]byte, error) {
	head, err := f.Peek(n)
	if err != nil && err != io.EOF && !errors.Is(err, bufio.ErrBufferFull) {
		return nil, err
	}
	return head, nil
}

// Close closes the file, its decoder and its temporary copy.
func (f *File) Close() error {
	var faults []error
	for i := len(f.closers) - 1; i >= 0; i-- {
		faults = append(faults, f.closers[i]())
	}
	return errors.Join(faults...)
}

// Seekable returns a file with random access to the decompressed content: the file itself, or a temporary copy.
func (f *File) Seekable() (*os.File, int64, error) {
	if f.plain != nil {
		return f.plain, f.stored.size, nil
	}
	spool, err := os.CreateTemp("", "segmentbuild-*")
	if err != nil {
		return nil, 0, &objects.StorageError{Err: err}
	}
	f.closers = append(f.closers, func() error { return errors.Join(spool.Close(), os.Remove(spool.Name())) })
	size, err := io.Copy(&spooling{spool}, f.Reader)
	return spool, size, err
}

// A spooling writes the temporary copy of an input file. The type "spooling" marks write errors, such as a full disk,
// as storage errors, to distinguish these errors from errors of the copied file.
type spooling struct{ to io.Writer }

// Write implements io.Writer.
func (s *spooling) Write(p []byte) (int, error) {
	n, err := s.to.Write(p)
	if err != nil {
		err = &objects.StorageError{Err: err}
	}
	return n, err
}

// SkipBOM skips a UTF-8 byte order mark at the beginning and rejects UTF-16.
func (f *File) SkipBOM() error {
	head, err := f.Head(3)
	if err != nil {
		return err
	}
	if bytes.HasPrefix(head, []byte{0xef, 0xbb, 0xbf}) {
		_, err = f.Discard(3)
		return err
	}
	if bytes.HasPrefix(head, []byte{0xff, 0xfe}) || bytes.HasPrefix(head, []byte{0xfe, 0xff}) {
		return errors.New("the text is encoded as UTF-16, but must be UTF-8")
	}
	return nil
}

// CheckLength returns an error if the length of a local file has changed since Open. Callers call CheckLength after
// reading the file with random access.
func (f *File) CheckLength() error {
	local, ok := f.stored.body.(*os.File)
	if !ok || f.stored.size < 0 {
		return nil
	}
	stat, err := local.Stat()
	if err == nil && stat.Size() != f.stored.size {
		err = f.stored.lengthFault(stat.Size())
	}
	return err
}

// WithoutPacking returns a file name in lower case without an extension such as .gz, and the name of the compression,
// such as "gzip". If the name has no such extension, the returned compression is "".
func WithoutPacking(name string) (plain, packing string) {
	name = strings.ToLower(name)
	for ext, packing := range map[string]string{".gz": "gzip", ".gzip": "gzip", ".zst": "zstd", ".zstd": "zstd"} {
		if plain, ok := strings.CutSuffix(name, ext); ok {
			return plain, packing
		}
	}
	return name, ""
}
