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

// Errors of locations; compare with errors.Is.
var (
	// ErrNotFound: the object does not exist.
	ErrNotFound = errors.New("not found")
	// ErrNotModified: the document still has the tag that was given.
	ErrNotModified = errors.New("not modified")
	// ErrLostRace: the document is not the one that was to be replaced.
	ErrLostRace = errors.New("another process published in the meantime")
)

var errTruncated = errors.New("truncated")

// StorageError is a fault of a storage or of the way to it, such as a refused connection, a refused key or a full
// disk. It says nothing about what is stored: what has one may succeed another time.
type StorageError struct{ Err error }

func (e *StorageError) Error() string { return e.Err.Error() }
func (e *StorageError) Unwrap() error { return e.Err }

// Source is the half of a Location that reads. Implementations are safe for
// concurrent use and return as soon as ctx is done.
type Source interface {
	// Name is the place in the form in which the user gave it.
	Name() string
	// ReadTagged returns a document, an object that is replaced, and its tag, an
	// opaque version. When tag is not empty and still current the error is
	// ErrNotModified, for the cost of one conditional request. ErrNotFound when
	// there is none, an error when it has more than MaxDocumentBytes.
	ReadTagged(ctx context.Context, key, tag string) (body []byte, newTag string, err error)
	// Read returns a whole object, ErrNotFound when there is none, an error when
	// it has more than limit bytes. The slice is the caller's.
	Read(ctx context.Context, key string, limit int64) ([]byte, error)
	// List returns the objects whose keys begin with prefix, however deep they lie, ordered by key.
	List(ctx context.Context, prefix string) ([]Object, error)
}

// Location is a place where objects lie: a directory, or a prefix of an S3 bucket.
// No body may be changed after it was handed over.
type Location interface {
	Source
	// Put stores an object that never changes. written is false when the object
	// was there already with the same size. A reader sees all of it or nothing.
	Put(ctx context.Context, key string, body []byte) (written bool, err error)
	// Overwrite stores an object whatever is there: afterwards it has these bytes
	// and is young. A reader sees all of what was there, or all of this.
	Overwrite(ctx context.Context, key string, body []byte) error
	// Replace replaces a document if it still has the given tag; an empty tag
	// means that it must not exist yet. ErrLostRace otherwise. Atomic, also
	// against other processes and machines. Other bytes have another tag.
	Replace(ctx context.Context, key string, body []byte, tag string) (newTag string, err error)
	// Delete removes an object; one that does not exist is no error.
	Delete(ctx context.Context, key string) error
}

// MaxDocumentBytes bounds the documents that ReadTagged reads.
const MaxDocumentBytes = 1 << 20

// Object is one object of a location.
type Object struct {
	Key       string
	SizeBytes int64
	ChangedAt time.Time
}

const s3Scheme = "s3://"

// schemeRule is the beginning of a URL, or of what was meant to be one: s3:/bucket is no folder's name.
var schemeRule = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:/`)

// IsURL reports whether a location is written as a URL, of whatever scheme and
// however many slashes, and not as a path.
func IsURL(location string) bool { return schemeRule.MatchString(location) }

// Open opens a directory or s3://bucket/prefix. It does not touch the location:
// what is not there shows when it is read.
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

// readAll reads up to limit bytes and refuses more. sizeBytes is a hint, -1 for none.
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
