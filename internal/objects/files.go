package objects

import (
	"context"
	"io"
	"os"
	"time"
)

// Files finds and opens the input files of the program segmentbuild. The names for Open are those that Glob returns.
type Files interface {
	// Glob returns the files that match the pattern. If no file matches, Glob returns no error. Glob returns a name
	// without wildcards unchanged.
	Glob(ctx context.Context, pattern string) (Matches, error)
	// Open opens a file for reading. If the size is unknown, sizeBytes is -1. The function ChangedAt returns when the
	// opened file was last written.
	Open(ctx context.Context, name string) (body io.ReadCloser, sizeBytes int64, err error)
}

// Dated is implemented by open files and S3 objects that know when their content was last written.
type Dated interface {
	ChangedAt() time.Time
}

// ChangedAt returns when an input file that Files.Open has opened was last written. If the time of the last write is
// unknown, for example for a pipe, the result "ok" is false.
func ChangedAt(body io.Reader) (at time.Time, ok bool) {
	switch b := body.(type) {
	case Dated:
		at = b.ChangedAt()
	case *os.File:
		if stat, err := b.Stat(); err == nil && stat.Mode().IsRegular() {
			at = stat.ModTime()
		}
	}
	return at, !at.IsZero()
}

// Matches holds the names of the input files that match a pattern.
type Matches struct {
	Names []string // in ascending order; Files.Open accepts these names
	// LeftOut holds files that match the pattern but contain no data. Such files are hidden files, and files that jobs
	// write beside their data (_SUCCESS, .part-0.crc, _temporary/…).
	LeftOut []string
}
