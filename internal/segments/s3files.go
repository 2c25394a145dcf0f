package segments

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// S3Files reads input files from s3://bucket/key names, all with one client.
type S3Files struct {
	cfg  S3Config
	once sync.Once
	api  *s3.Client
	err  error
}

var _ Files = (*S3Files)(nil)

// NewS3Files returns files that are reached by cfg. It connects with the first use.
func NewS3Files(cfg S3Config) *S3Files { return &S3Files{cfg: cfg} }

// Glob implements Files; '*' and '?' do not match '/'.
func (f *S3Files) Glob(ctx context.Context, pattern string) ([]string, error) {
	if !hasWildcard(pattern) {
		return []string{pattern}, nil
	}
	b, key, err := f.open(ctx, pattern)
	if err != nil {
		return nil, err
	}
	objects, err := b.List(ctx, key[:strings.IndexAny(key, "*?[")])
	if err != nil {
		return nil, err
	}
	var names []string
	for _, o := range objects {
		ok, err := path.Match(key, o.Key)
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", pattern, err)
		}
		if ok {
			names = append(names, s3Scheme+b.name+"/"+o.Key)
		}
	}
	return names, nil
}

func (f *S3Files) open(ctx context.Context, name string) (*bucket, string, error) {
	bucketName, key, _ := strings.Cut(strings.TrimPrefix(name, s3Scheme), "/")
	if bucketName == "" || key == "" || hasWildcard(bucketName) {
		return nil, "", fmt.Errorf("%q: want s3://bucket/key", name)
	}
	f.once.Do(func() { f.api, f.err = newS3Client(ctx, f.cfg) })
	return &bucket{location: name, name: bucketName, api: f.api}, key, f.err
}

// Open implements Files. A body that breaks off is read on from where it ended.
func (f *S3Files) Open(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	b, key, err := f.open(ctx, name)
	if err != nil {
		return nil, 0, err
	}
	object := &s3Object{ctx: ctx, bucket: b, key: key}
	if err := object.start(); err != nil {
		return nil, 0, err
	}
	return object, object.size, nil
}
