package segments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Errors of sources and stores; compare with errors.Is.
var (
	// ErrNotFound: the object does not exist.
	ErrNotFound = errors.New("not found")
	// ErrNothingLive: there is no current.json. Always together with ErrNotFound.
	ErrNothingLive = errors.New("no generation is live")
	// ErrNotModified: the document still has the tag that was given.
	ErrNotModified = errors.New("not modified")
	// ErrLostRace: the document is not the one that was to be replaced.
	ErrLostRace = errors.New("somebody else published in the meantime")
)

// Source is where generations are read from. Implementations are safe for
// concurrent use and return as soon as ctx is done.
type Source interface {
	// Location is the place in the form in which the user gave it.
	Location() string
	// ReadTagged returns current.json, or another document that is replaced, and
	// its tag, an opaque version. When tag is not empty and still current the
	// error is ErrNotModified, for the cost of one conditional request.
	// ErrNotFound when there is none.
	ReadTagged(ctx context.Context, key, tag string) (body []byte, newTag string, err error)
	// Read returns a whole object, ErrNotFound when there is none, an error when
	// it has more than limit bytes. The slice is the caller's.
	Read(ctx context.Context, key string, limit int64) ([]byte, error)
}

// Store is a Source that can be published to.
type Store interface {
	Source
	// Put stores an object that never changes. written is false when the object
	// was there already with the same size. A reader sees all of it or nothing.
	Put(ctx context.Context, key string, body []byte) (written bool, err error)
	// Overwrite stores an object whatever is there: afterwards it has these bytes
	// and is young. A reader sees all of what was there, or all of this.
	Overwrite(ctx context.Context, key string, body []byte) error
	// Replace replaces current.json, or another document, if it still has the
	// given tag; an empty tag means that it must not exist yet. ErrLostRace
	// otherwise. Atomic, also against other processes and machines. Other bytes
	// have another tag.
	Replace(ctx context.Context, key string, body []byte, tag string) (newTag string, err error)
	// List returns the objects whose keys begin with prefix, ordered by key.
	List(ctx context.Context, prefix string) ([]Object, error)
	// Delete removes an object; one that does not exist is no error.
	Delete(ctx context.Context, key string) error
}

// Object is one object of a store.
type Object struct {
	Key       string
	SizeBytes int64
	ChangedAt time.Time
}

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

// S3Config says how to reach S3. The zero value is AWS, as the SDK's usual
// chain (environment, shared files, instance role) configures it.
type S3Config struct {
	Endpoint string // URL of another server; empty: AWS_ENDPOINT_URL_S3, else AWS
	Region   string // empty: from the SDK's chain, else us-east-1
	// Patient requests are tried again until their context ends, for a command
	// that nobody starts again. Otherwise a few times, for who comes again.
	Patient bool
	// Retrying is called with the error of each attempt that is followed by
	// another, from several goroutines. Nil: nothing. Only of patient requests.
	Retrying func(error)
	pause    time.Duration // the longest between two attempts; 0: maxPause
	// Stall is how long a request may stand still before it is tried again. 0: DefaultStall.
	Stall time.Duration
	// PathStyle addresses buckets as path segments. Nil: true when an endpoint is set.
	PathStyle *bool
}

const s3Scheme = "s3://"

// schemeRule is the beginning of a URL, or of what was meant to be one: s3:/bucket is no folder's name.
var schemeRule = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:/`)

// IsURL reports whether a location is written as a URL, of whatever scheme and
// however many slashes, and not as a path.
func IsURL(location string) bool { return schemeRule.MatchString(location) }

// OpenSource opens a directory or s3://bucket/prefix for reading. It does not
// touch the location: what is not there shows when it is read.
func OpenSource(ctx context.Context, location string, cfg S3Config) (Source, error) {
	return OpenStore(ctx, location, cfg)
}

// OpenStore opens a directory or s3://bucket/prefix for reading and publishing.
func OpenStore(ctx context.Context, location string, cfg S3Config) (Store, error) {
	if rest, ok := strings.CutPrefix(location, s3Scheme); ok {
		bucket, prefix, _ := strings.Cut(rest, "/")
		if bucket == "" {
			return nil, fmt.Errorf("location %q: no bucket, want s3://bucket/prefix", location)
		}
		return openS3(ctx, location, bucket, strings.Trim(prefix, "/"), cfg)
	}
	if location == "" {
		return nil, errors.New("no location: want a directory or s3://bucket/prefix")
	}
	if IsURL(location) {
		scheme, _, _ := strings.Cut(location, ":/")
		return nil, fmt.Errorf("location %q: unknown scheme %q, want a directory or s3://bucket/prefix", location, scheme)
	}
	return &directory{root: filepath.Clean(location)}, nil
}

// readAll reads up to limit bytes and refuses more. sizeBytes is a hint, -1 for none.
func readAll(r io.Reader, sizeBytes, limit int64) ([]byte, error) {
	if sizeBytes > limit {
		return nil, fmt.Errorf("%d bytes, at most %d are expected", sizeBytes, limit)
	}
	if sizeBytes >= 0 {
		body := make([]byte, sizeBytes)
		n, err := io.ReadFull(r, body)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("%d of %d bytes: %w", n, sizeBytes, errTruncated)
		}
		return body, err
	}
	body, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(body)) > limit {
		return nil, fmt.Errorf("more than %d bytes", limit)
	}
	return body, err
}
