package format

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"capper/internal/objects"
)

// storedFile is a file as it is stored, before it is decompressed. Its Read
// returns io.EOF, and nothing that could be taken for it, where the file
// really ends: a length that was announced has arrived, to the byte.
type storedFile struct {
	ctx      context.Context
	body     io.ReadCloser
	size     int64 // announced; -1 when nothing announces one
	progress Progress

	read  int64
	fault atomic.Pointer[error] // why it could not be read to its end; a decoder reads ahead, in a goroutine of its own
}

// bufferBytes is enough to look at the first row, or at all of a small file.
func (s *storedFile) bufferBytes() int {
	if s.size < 0 {
		return HeadBytes
	}
	return int(min(s.size+1, HeadBytes))
}

// Read implements io.Reader.
func (s *storedFile) Read(p []byte) (int, error) {
	if err := cmp.Or(s.broken(), s.ctx.Err()); err != nil {
		return 0, err
	}
	n, err := s.body.Read(p)
	s.read += int64(n)
	if s.progress != nil && n > 0 {
		s.progress(int64(n), 0)
	}
	switch {
	case err == nil || err == io.EOF && (s.size < 0 || s.read == s.size):
		return n, err
	case err == io.EOF:
		err = s.lengthFault(s.read)
	default: // a broken connection may come as io.ErrUnexpectedEOF
		err = &objects.StorageError{Err: fmt.Errorf("after %d bytes: %w", s.read, err)}
	}
	s.fault.Store(&err)
	return n, err
}

// broken is why the file could not be read to its end, nil while it could.
func (s *storedFile) broken() error {
	if fault := s.fault.Load(); fault != nil {
		return *fault
	}
	return nil
}

// lengthFault says that there are not as many bytes as there were when the file was opened.
func (s *storedFile) lengthFault(now int64) error {
	return fmt.Errorf("file has %d bytes but had %d when it was opened: another program is writing it", now, s.size)
}

// checkLength looks whether a local file that was read at several places is still as long as it was.
func (s *storedFile) checkLength() error {
	local, ok := s.body.(*os.File)
	if !ok || s.size < 0 {
		return nil
	}
	stat, err := local.Stat()
	if err == nil && stat.Size() != s.size {
		err = s.lengthFault(stat.Size())
	}
	return err
}

// decompressed is the content of a compressed file. A decoder may take a broken
// input for its end, between two frames for instance; this does not.
type decompressed struct {
	packing string
	from    io.Reader
	stored  *storedFile
}

// Read implements io.Reader.
func (d *decompressed) Read(p []byte) (int, error) {
	n, err := d.from.Read(p)
	if err == nil {
		return n, nil
	}
	switch broken := d.stored.broken(); {
	case broken != nil:
		return n, broken
	case err == io.EOF:
		return n, io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = fmt.Errorf("file is truncated: %w", err)
	}
	return n, fmt.Errorf("%s: %w", d.packing, err)
}
