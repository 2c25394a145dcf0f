package objects

import (
	"context"
	"io"
	"os"
	"time"
)

// Files opens input files. Open accepts the names that Glob returns.
type Files interface {
	// Glob returns the files that match the pattern; no match is not an error. A name without
	// wildcards is returned unchanged.
	Glob(ctx context.Context, pattern string) (Matches, error)
	// Open opens a file for reading. The size is -1 if it is unknown. ChangedAt returns when the
	// opened file was last written.
	Open(ctx context.Context, name string) (body io.ReadCloser, sizeBytes int64, err error)
}

// Dated is a body that knows when its content was last written.
type Dated interface {
	ChangedAt() time.Time
}

// ChangedAt returns when the file behind a body from Files.Open was last written. ok is false if the
// body has no such time, like a pipe.
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

// Matches holds the files that match a pattern.
type Matches struct {
	Names []string // in ascending order; Open accepts these names
	// LeftOut holds files that match but contain no data: hidden files, and files that jobs write
	// beside their data (_SUCCESS, .part-0.crc, _temporary/…).
	LeftOut []string
}
