package objects

import (
	"context"
	"fmt"
	"io"
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
	for _, o := range objects {
		if !strings.HasSuffix(o.Key, "/") { // the mark of a folder
			names = append(names, s3Scheme+b.name+"/"+o.Key)
		}
	}
	return rule.sort(names), nil
}

func (f *S3Files) open(ctx context.Context, name string) (*bucket, string, error) {
	bucketName, key, _ := strings.Cut(strings.TrimPrefix(name, s3Scheme), "/")
	if bucketName == "" || key == "" || hasWildcard(bucketName) {
		return nil, "", fmt.Errorf("%q: want s3://bucket/key", name)
	}
	f.once.Do(func() { f.api, f.err = newS3Client(ctx, f.cfg) })
	if f.err != nil {
		return nil, "", &StorageError{f.err}
	}
	return &bucket{location: name, name: bucketName, api: f.api}, key, nil
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
