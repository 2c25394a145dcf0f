package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// S3Files reads the input files of segmentbuild with names like s3://bucket/key. All reads share one S3 client. Every
// file must have the length that the listing or a separate HEAD request reported. By the length, S3Files detects a
// proxy that truncates a text after a line and adjusts the Content-Length.
type S3Files struct {
	cfg  S3Config
	once sync.Once
	api  *s3.Client
	err  error

	mu    sync.Mutex
	sizes map[string]int64 // sizes in bytes that listings reported; key: name of the file
}

var _ Files = (*S3Files)(nil)

// NewS3Files returns an S3Files with the settings in cfg. The S3Files connects to S3 at its first use.
func NewS3Files(cfg S3Config) *S3Files { return &S3Files{cfg: cfg, sizes: map[string]int64{}} }

// Glob implements Files.
func (f *S3Files) Glob(ctx context.Context, text string) (Matches, error) {
	if !hasWildcard(text) {
		return Matches{Names: []string{text}}, nil
	}
	b, key, err := f.open(ctx, text)
	if err != nil {
		return Matches{}, err
	}
	rule, err := parsePattern(text)
	if err != nil {
		return Matches{}, err
	}
	objects, err := b.List(ctx, key[:strings.IndexAny(key, "*?[")])
	if err != nil {
		return Matches{}, err
	}
	var names []string
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range objects {
		if !strings.HasSuffix(o.Key, "/") { // skips a folder marker
			name := s3Scheme + b.name + "/" + o.Key
			names, f.sizes[name] = append(names, name), o.SizeBytes
		}
	}
	return rule.sort(names), nil
}

func (f *S3Files) open(ctx context.Context, name string) (*bucket, string, error) {
	bucketName, key, _ := strings.Cut(strings.TrimPrefix(name, s3Scheme), "/")
	if bucketName == "" || key == "" || hasWildcard(bucketName) {
		return nil, "", fmt.Errorf("%q: must have the form s3://bucket/key", name)
	}
	f.once.Do(func() { f.api, f.err = newS3Client(ctx, f.cfg) })
	if f.err != nil {
		return nil, "", &StorageError{f.err}
	}
	return &bucket{location: name, name: bucketName, api: f.api}, key, nil
}

// Open implements Files. If the connection breaks, the returned reader requests the missing bytes.
func (f *S3Files) Open(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	b, key, err := f.open(ctx, name)
	if err != nil {
		return nil, 0, err
	}
	object := &s3Object{ctx: ctx, bucket: b, key: key}
	if err := object.start(); err != nil {
		return nil, 0, err
	}
	size, from, err := f.size(ctx, b, key, name)
	if err == nil && object.size != size {
		err = fmt.Errorf(
			"the S3 server sends %d bytes, but %s announced %d bytes: "+
				"the object was replaced meanwhile, or a proxy truncates it",
			object.size, from, size)
	}
	if err != nil {
		return nil, 0, errors.Join(err, object.Close())
	}
	return object, object.size, nil
}

// The method size returns the length that an S3 object must have. The result "from" says, for error messages, whether
// the length comes from the listing or from a HEAD request.
func (f *S3Files) size(ctx context.Context, b *bucket, key, name string) (size int64, from string, err error) {
	f.mu.Lock()
	size, listed := f.sizes[name]
	f.mu.Unlock()
	if listed {
		return size, "the listing", nil
	}
	head, err := b.api.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.name, Key: &key})
	if err != nil {
		return 0, "", b.failed("look for", key, err)
	}
	if size = contentLength(head.ContentLength); size < 0 {
		return 0, "", b.failed("look for", key, errNoLength)
	}
	return size, "a look at it (HEAD)", nil
}
