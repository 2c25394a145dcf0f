package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
)

// The errors of locations, to be compared with errors.Is.
var (
	// ErrNotFound reports that the object does not exist.
	ErrNotFound = errors.New("not found")
	// ErrNotModified reports that the document still has the given tag.
	ErrNotModified = errors.New("not modified")
	// ErrLostRace reports that another process has replaced the document since it was read.
	ErrLostRace = errors.New("another process published in the meantime")
)

var errTruncated = errors.New("truncated")

// StorageError reports a fault of the storage or of the connection to it, such as a refused
// connection, a rejected key or a full disk. A StorageError says nothing about the stored objects, and
// a retry may succeed.
type StorageError struct{ Err error }

func (e *StorageError) Error() string { return e.Err.Error() }
func (e *StorageError) Unwrap() error { return e.Err }

// Source is the reading half of a Location. Implementations are safe for concurrent use and return as
// soon as ctx ends.
type Source interface {
	// Name returns the location as the user wrote it.
	Name() string
	// ReadTagged returns a document and its tag, which is an opaque version. If tag is not empty and
	// still current, ReadTagged returns ErrNotModified at the cost of one conditional request. It
	// returns ErrNotFound if the document does not exist, and an error if the document has more than
	// MaxDocumentBytes.
	ReadTagged(ctx context.Context, key, tag string) (body []byte, newTag string, err error)
	// Read returns a whole object. It returns ErrNotFound if the object does not exist, and an error
	// if the object has more than limit bytes. The caller owns the slice.
	Read(ctx context.Context, key string, limit int64) ([]byte, error)
	// List returns the objects whose keys begin with prefix, at any depth, in the order of their keys.
	List(ctx context.Context, prefix string) ([]Object, error)
}

// Location stores objects in a directory or below a prefix of an S3 bucket. Callers must not change a
// body after they have passed it to a Location.
type Location interface {
	Source
	// Put stores an object that never changes. written is false if the object already existed with the
	// same size. A reader sees the whole object or no object.
	Put(ctx context.Context, key string, body []byte) (written bool, err error)
	// Overwrite stores an object even if it exists, which also renews its modification time. A reader
	// sees either the whole old object or the whole new one.
	Overwrite(ctx context.Context, key string, body []byte) error
	// Replace atomically replaces a document if it still has the given tag, and otherwise returns
	// ErrLostRace. An empty tag means that the document must not exist yet. Replace is atomic across
	// processes and machines. Different content has a different tag.
	Replace(ctx context.Context, key string, body []byte, tag string) (newTag string, err error)
	// Delete removes an object. A missing object is not an error.
	Delete(ctx context.Context, key string) error
}

// MaxDocumentBytes is the maximum size of a document that ReadTagged reads.
const MaxDocumentBytes = 1 << 20

// Object describes one object of a location.
type Object struct {
	Key       string
	SizeBytes int64
	ChangedAt time.Time
}

const s3Scheme = "s3://"

// schemeRule matches the beginning of a URL, including mistyped ones such as s3:/bucket, because no
// folder has such a name.
var schemeRule = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:/`)

// IsURL reports whether a location is written as a URL instead of a path. Any scheme and any number of
// slashes count as a URL.
func IsURL(location string) bool { return schemeRule.MatchString(location) }

// Open returns the location at a directory or at s3://bucket/prefix. Open does not access the
// location, so a missing directory or bucket is reported by the first read.
func Open(ctx context.Context, location string, cfg S3Config) (Location, error) {
	if rest, ok := strings.CutPrefix(location, s3Scheme); ok {
		bucket, prefix, _ := strings.Cut(rest, "/")
		if bucket == "" {
			return nil, fmt.Errorf("location %q: the bucket is missing; use s3://bucket/prefix", location)
		}
		return openS3(ctx, location, bucket, strings.Trim(prefix, "/"), cfg)
	}
	if location == "" {
		return nil, errors.New("location is empty: use a directory or s3://bucket/prefix")
	}
	if IsURL(location) {
		scheme, _, _ := strings.Cut(location, ":/")
		return nil, fmt.Errorf("location %q: unknown scheme %q; use a directory or s3://bucket/prefix", location,
			scheme)
	}
	return NewDirectory(location), nil
}

// readAll reads at most limit bytes and returns an error if there are more. sizeBytes is a hint for
// the allocation; -1 means unknown.
func readAll(r io.Reader, sizeBytes, limit int64) ([]byte, error) {
	if sizeBytes > limit {
		return nil, fmt.Errorf("object has %d bytes and must have at most %d", sizeBytes, limit)
	}
	if sizeBytes >= 0 {
		body := make([]byte, sizeBytes)
		n, err := io.ReadFull(r, body)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("read %d of %d bytes: %w", n, sizeBytes, errTruncated)
		}
		return body, err
	}
	body, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(body)) > limit {
		return nil, fmt.Errorf("object has more than %d bytes", limit)
	}
	return body, err
}
