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

// ErrNotFound, ErrNotModified and ErrLostRace are errors of a Location. Callers recognise the errors of a Location
// with errors.Is.
var (
	// ErrNotFound reports that the object does not exist.
	ErrNotFound = errors.New("not found")
	// ErrNotModified reports that the document still has the tag that the caller passed.
	ErrNotModified = errors.New("not modified")
	// ErrLostRace reports that another process has replaced the document since the caller read its tag.
	ErrLostRace = errors.New("another process published segments in the meantime")
)

var errTruncated = errors.New("truncated")

// StorageError reports a fault of the storage or of the connection to the storage, such as a refused connection, a
// rejected key or a full disk. The stored objects may be intact in spite of a StorageError, and a retry may succeed.
type StorageError struct{ Err error }

func (e *StorageError) Error() string { return e.Err.Error() }
func (e *StorageError) Unwrap() error { return e.Err }

// Source has the methods of a Location that read objects. Implementations of Source are safe for concurrent use and
// return as soon as ctx ends.
type Source interface {
	// Name returns the text with which the user named the location.
	Name() string
	// ReadTagged returns a document and its tag (opaque version). If tag is not empty and is still the document's tag,
	// ReadTagged returns ErrNotModified; this costs one conditional request. If the document does not exist, ReadTagged
	// returns ErrNotFound. If the document has more than MaxDocumentBytes, ReadTagged returns an error.
	ReadTagged(ctx context.Context, key, tag string) (body []byte, newTag string, err error)
	// Read returns a whole object. If the object does not exist, Read returns ErrNotFound. If the object has more than
	// limit bytes, Read returns an error. The caller owns the returned slice.
	Read(ctx context.Context, key string, limit int64) ([]byte, error)
	// List returns the objects whose keys begin with prefix, at any depth, in the order of their keys.
	List(ctx context.Context, prefix string) ([]Object, error)
}

// A Location stores objects in a directory or below a prefix of an S3 bucket. After a caller has passed a body to a
// method of a Location, the caller must not change the body.
type Location interface {
	Source
	// Put stores an object that never changes. If an object with this key and of the same size already exists, Put
	// writes nothing, and the result "written" is false. A reader finds either the whole object or no object.
	Put(ctx context.Context, key string, body []byte) (written bool, err error)
	// Overwrite stores an object even if the object already exists. Overwrite therefore also renews the object's
	// modification time. A reader finds either the whole old object or the whole new object.
	Overwrite(ctx context.Context, key string, body []byte) error
	// Replace atomically replaces a document if the document still has the given tag. Otherwise Replace returns
	// ErrLostRace. If the argument "tag" is empty, the document must not exist yet. Replace is atomic across processes
	// and machines. Documents with different content have different tags.
	Replace(ctx context.Context, key string, body []byte, tag string) (newTag string, err error)
	// Delete removes an object. If the object does not exist, Delete returns no error.
	Delete(ctx context.Context, key string) error
}

// MaxDocumentBytes is the maximum size of a document (an object that callers can replace) that ReadTagged reads.
const MaxDocumentBytes = 1 << 20

// An Object describes an object that List found in a location.
type Object struct {
	Key       string
	SizeBytes int64
	ChangedAt time.Time
}

const s3Scheme = "s3://"

// schemeRule matches the beginning of a URL. The variable schemeRule also matches "s3:/bucket", so that capper does not
// treat such a mistyped URL as a path.
var schemeRule = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:/`)

// IsURL reports whether a location is written as a URL instead of a path. IsURL accepts any scheme and any number of
// slashes.
func IsURL(location string) bool { return schemeRule.MatchString(location) }

// Open returns the Location for a directory or for s3://bucket/prefix. Open does not access the directory or the
// bucket yet. If the directory or the bucket does not exist, the first read returns an error.
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

// readAll reads the whole argument r, and returns an error if r has more than "limit" bytes. If the argument
// "sizeBytes" is not -1 (unknown), readAll reads exactly sizeBytes bytes.
func readAll(r io.Reader, sizeBytes, limit int64) ([]byte, error) {
	if sizeBytes > limit {
		return nil, fmt.Errorf("object has %d bytes, but must have at most %d", sizeBytes, limit)
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
