package format

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"capper/internal/objects"
)

// A storedFile reads an input file in its stored form, without decompression. The method Read returns io.EOF only at
// the real end of the file, after exactly the announced number of bytes.
type storedFile struct {
	ctx      context.Context
	body     io.ReadCloser
	size     int64 // announced length; -1: unknown
	progress Progress

	read  int64
	fault atomic.Pointer[error] // atomic, because a decoder reads ahead in its own goroutine
}

// bufferBytes returns the size of a read buffer with space for the first row or for a whole small file.
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
	default: // a broken connection may cause io.ErrUnexpectedEOF
		err = &objects.StorageError{Err: fmt.Errorf("after %d bytes: %w", s.read, err)}
	}
	s.fault.Store(&err)
	return n, err
}

// The method "broken" returns the error that stopped the reading of the file before its end, or nil.
func (s *storedFile) broken() error {
	if fault := s.fault.Load(); fault != nil {
		return *fault
	}
	return nil
}

// lengthFault returns an error for a file whose length has changed since Open.
func (s *storedFile) lengthFault(now int64) error {
	return fmt.Errorf("file has %d bytes but had %d when it was opened: another program is writing it", now, s.size)
}

// A decompressed reads the decompressed content of a file. A decoder may mistake a broken input for the end of the
// file, for example between two frames. After a fault of the input, the method Read therefore returns this fault
// instead of io.EOF.
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
