package database

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
)

// ErrDamaged is the error for an archive that is truncated or changed.
var ErrDamaged = errors.New("the backup is damaged or incomplete")

// FormatError is the error for an intact archive whose format this program cannot read.
type FormatError struct{ reason error }

func (e *FormatError) Error() string { return e.reason.Error() }
func (e *FormatError) Unwrap() error { return e.reason }

// A checker receives the bytes of a backup archive in pieces of any size. After the last byte, the checker decides
// whether the archive is complete and unchanged.
type checker struct {
	sum  hash.Hash
	last []byte // the latest bytes, which may be the checksum at the end
}

// NewChecker returns a checker for one backup archive.
func NewChecker() *checker { return &checker{sum: sha256.New()} }

// The method Write adds the next bytes of the archive to the checksum of the checker. The method Write never returns an
// error.
func (c *checker) Write(p []byte) (int, error) {
	c.last = append(c.last, p...)
	if n := len(c.last) - endSize; n > 0 {
		c.sum.Write(c.last[:n])
		c.last = append(c.last[:0], c.last[n:]...)
	}
	return len(p), nil
}

// The method Check returns an error if the received bytes are not a complete archive.
func (c *checker) Check() error {
	want, err := ending(c.sum.Sum(nil))
	if err != nil {
		return err
	}
	if !bytes.Equal(c.last, want) {
		return ErrDamaged
	}
	return nil
}

// The function Verify reads the whole archive and returns the manifest. If the archive is incomplete or changed, Verify
// returns an error.
func Verify(archive io.ReadSeeker) (*Manifest, error) {
	check := NewChecker()
	if _, err := archive.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	if _, err := io.CopyBuffer(check, struct{ io.Reader }{archive}, make([]byte, 1<<20)); err != nil {
		return nil, err
	}
	if err := check.Check(); err != nil {
		return nil, err
	}
	var found *Manifest
	sizes := map[string]int64{}
	err := each(archive, func(h *tar.Header, content io.Reader) (err error) {
		if _, twice := sizes[h.Name]; twice {
			return fmt.Errorf("%w: the archive contains entry %q twice", ErrDamaged, h.Name)
		}
		sizes[h.Name] = h.Size
		if h.Name != manifestName {
			return nil
		}
		text, err := io.ReadAll(io.LimitReader(content, 64<<20))
		if err == nil {
			if found, err = decodeManifest(text); err != nil {
				err = &FormatError{err}
			}
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return nil, fmt.Errorf("%w: %s is missing", ErrDamaged, manifestName)
	}
	if err := found.check(sizes); err != nil {
		return nil, err
	}
	return found, nil
}

// The archive must contain exactly the files in the manifest, the manifest itself and the checksum. Otherwise, the
// method "check" returns an error.
func (m *Manifest) check(sizes map[string]int64) error {
	delete(sizes, manifestName)
	delete(sizes, sumName)
	for _, file := range m.Files {
		size, there := sizes[file.Name]
		switch {
		case !there:
			return fmt.Errorf("%w: %s names file %q, which the backup does not contain",
				ErrDamaged, manifestName, file.Name)
		case size != file.Size:
			return fmt.Errorf("%w: file %q has %d bytes, but must have %d according to %s",
				ErrDamaged, file.Name, size, file.Size,
				manifestName)
		}
		delete(sizes, file.Name)
	}
	for name := range sizes {
		return fmt.Errorf("%w: file %q is not named in %s", ErrDamaged, name, manifestName)
	}
	return nil
}

// The function "each" calls the function "yield" for each file of a backup archive.
func each(archive io.ReadSeeker, yield func(*tar.Header, io.Reader) error) error {
	if _, err := archive.Seek(0, io.SeekStart); err != nil {
		return err
	}
	for entries := tar.NewReader(archive); ; {
		h, err := entries.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, tar.ErrHeader), errors.Is(err, io.ErrUnexpectedEOF):
			return &FormatError{err}
		case err != nil:
			return err
		case !isName(h.Name) || h.Typeflag != tar.TypeReg:
			return &FormatError{fmt.Errorf("entry %q of the backup archive must be a regular file", h.Name)}
		}
		if err := yield(h, entries); err != nil {
			return err
		}
	}
}
