package objects

import (
	"context"
	"io"
	"os"
	"time"
)

// The interface Files finds and opens the input files of the program segmentbuild. Callers pass the names that Glob
// returned to Open.
type Files interface {
	// Glob returns the files that match the pattern. If no file matches, Glob returns no error. Glob returns a name
	// without wildcards unchanged.
	Glob(ctx context.Context, pattern string) (Matches, error)
	// Open opens a file for reading. If the size is unknown, sizeBytes is -1. The function ChangedAt returns the time
	// of the last write to the opened file.
	Open(ctx context.Context, name string) (body io.ReadCloser, sizeBytes int64, err error)
}

// A Dated is an open file or S3 object that knows the time of its last write.
type Dated interface {
	ChangedAt() time.Time
}

// ChangedAt returns the time of the last write to an input file that Files.Open has opened. If the time of the last
// write is unknown, for example for a pipe, the result "ok" is false.
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

// The type Matches contains the names of the input files that match a pattern.
type Matches struct {
	Names []string // in ascending order; Files.Open accepts these names
	// LeftOut contains files that match the pattern, but whose names are not those of data files. Such files are hidden
	// files, and files that jobs write beside their data (_SUCCESS, .part-0.crc, _temporary/…).
	LeftOut []string
}
