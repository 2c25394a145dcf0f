package objects

import (
	"context"
	"io"
	"os"
	"time"
)

// Files is where input files are read from; the names of Glob are those that
// Open understands.
type Files interface {
	// Glob returns what matches the pattern; nothing is no error. A name without
	// wildcards is returned as it is.
	Glob(ctx context.Context, pattern string) (Matches, error)
	// Open opens a file for reading. The size is -1 when it is not known. ChangedAt
	// says of the body when the file was written.
	Open(ctx context.Context, name string) (body io.ReadCloser, sizeBytes int64, err error)
}

// Dated is a body that knows when its content was written.
type Dated interface {
	ChangedAt() time.Time
}

// ChangedAt is when the file behind the body of a Files.Open was last written;
// ok is false for what has no such time, such as a pipe.
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

// Matches are the files that a pattern names.
type Matches struct {
	Names []string // ascending; those that Open understands
	// LeftOut match as well but are no data: hidden files and the marks that
	// jobs leave beside it (_SUCCESS, .part-0.crc, _temporary/…).
	LeftOut []string
}
