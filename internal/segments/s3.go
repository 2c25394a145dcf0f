package segments

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	tmtypes "github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"
)

// Objects above one part are read and written in parallel parts.
const (
	s3PartBytes = 8 << 20
	s3Parallel  = 4 // parts of one object at a time; segments are read in parallel as well
)

// bucket is a store in an S3 bucket below a prefix. Deadlines come from the
// contexts; the SDK retries what is worth retrying, see setRetries.
type bucket struct {
	location string
	name     string
	prefix   string // empty, or ends in a slash
	api      *s3.Client
	transfer *transfermanager.Client

	probing sync.Mutex
	probed  bool // the server is known to heed conditions
}

var _ Store = (*bucket)(nil)

func openS3(ctx context.Context, location, name, prefix string, cfg S3Config) (*bucket, error) {
	api, err := newS3Client(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if prefix != "" {
		prefix += "/"
	}
	transfer := transfermanager.New(api, func(o *transfermanager.Options) {
		o.PartSizeBytes = s3PartBytes
		o.MultipartUploadThreshold = 2 * s3PartBytes
		o.Concurrency = s3Parallel
		o.GetObjectType = tmtypes.GetObjectRanges
	})
	return &bucket{location: location, name: name, prefix: prefix, api: api, transfer: transfer}, nil
}

func newS3Client(ctx context.Context, cfg S3Config) (*s3.Client, error) {
	loaded, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(stalling(cmp.Or(cfg.Stall, DefaultStall))),
		config.WithLogger(logging.Nop{}))
	if err != nil {
		return nil, fmt.Errorf("load the S3 configuration: %w", err)
	}
	endpoint := cfg.Endpoint
	if endpoint == "" {
		endpoint = os.Getenv("AWS_ENDPOINT_URL_S3")
	}
	return s3.NewFromConfig(loaded, func(o *s3.Options) {
		if cfg.Region != "" {
			o.Region = cfg.Region
		}
		if o.Region == "" {
			o.Region = "us-east-1"
		}
		if endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
			o.UsePathStyle = true
		}
		if cfg.PathStyle != nil {
			o.UsePathStyle = *cfg.PathStyle
		}
		setRetries(o, cfg)
		o.DisableLogOutputChecksumValidationSkipped = true // ranges cannot be checked; every bitmap has a SHA-256
	}), nil
}

func (b *bucket) Location() string { return b.location }

// failed names the object in the error, translates the SDK's errors into this
// package's, and leaves out what only the SDK's authors want to know. All but
// what does not exist is a StorageError.
func (b *bucket) failed(action, key string, err error) error {
	var response *awshttp.ResponseError
	var api smithy.APIError
	switch {
	case errors.As(err, &response) && response.HTTPStatusCode() == http.StatusNotModified:
		return ErrNotModified
	case errors.As(err, &api) && api.ErrorCode() == "NoSuchBucket":
		err = fmt.Errorf("%w: there is no such bucket", ErrNotFound)
	case response != nil && response.HTTPStatusCode() == http.StatusNotFound:
		err = ErrNotFound
	case response != nil && api != nil:
		err = &StorageError{given(err, &refusal{status: response.HTTPStatusCode(), api: api})}
	case strings.Contains(err.Error(), "get credentials"): // the SDK has no type for it
		err = &StorageError{fmt.Errorf("no S3 credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use a shared profile or an instance's role (%w)", err)}
	default:
		err = &StorageError{err}
	}
	return fmt.Errorf("%s %s%s/%s%s: %w", action, s3Scheme, b.name, b.prefix, key, err)
}

// given is a refusal, together with the end of the context if that is why no more attempts followed it.
func given(err error, last *refusal) error {
	for _, ended := range []error{context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, ended) {
			return fmt.Errorf("%w; before that: %w", ended, last)
		}
	}
	return last
}

// refusal is an answer of the server other than success.
type refusal struct {
	status int
	api    smithy.APIError
}

func (r *refusal) Error() string {
	return fmt.Sprintf("status %d, %s: %s", r.status, r.api.ErrorCode(), r.api.ErrorMessage())
}

// ReadTagged implements Source; the tag is the object's ETag.
func (b *bucket) ReadTagged(ctx context.Context, key, tag string) ([]byte, string, error) {
	input := &s3.GetObjectInput{Bucket: &b.name, Key: aws.String(b.prefix + key)}
	if tag != "" {
		input.IfNoneMatch = &tag
	}
	out, err := b.api.GetObject(ctx, input)
	if err != nil {
		return nil, "", b.failed("read", key, err)
	}
	defer out.Body.Close()
	body, err := readAll(out.Body, contentLength(out.ContentLength), maxDocumentBytes)
	if err != nil {
		return nil, "", b.failed("read", key, err)
	}
	return body, aws.ToString(out.ETag), nil
}

func contentLength(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}

// Read implements Source. Where the object has more than one part's size the
// first response is only used for its length.
func (b *bucket) Read(ctx context.Context, key string, limit int64) ([]byte, error) {
	get, cancel := context.WithCancel(ctx)
	defer cancel()
	out, err := b.api.GetObject(get, &s3.GetObjectInput{Bucket: &b.name, Key: aws.String(b.prefix + key)})
	if err != nil {
		return nil, b.failed("read", key, err)
	}
	defer out.Body.Close()
	if size := contentLength(out.ContentLength); size > s3PartBytes && size <= limit {
		cancel()
		body, err := b.readParts(ctx, key, size, out.ETag)
		if err != nil {
			return nil, b.failed("read", key, err)
		}
		return body, nil
	}
	body, err := readAll(out.Body, contentLength(out.ContentLength), limit)
	if err != nil {
		return nil, b.failed("read", key, err)
	}
	return body, nil
}

func (b *bucket) readParts(ctx context.Context, key string, size int64, tag *string) ([]byte, error) {
	body := make(buffer, size)
	out, err := b.transfer.DownloadObject(ctx, &transfermanager.DownloadObjectInput{
		Bucket: &b.name, Key: aws.String(b.prefix + key), WriterAt: body, IfMatch: tag,
	})
	if err != nil {
		return nil, err
	}
	if got := contentLength(out.ContentLength); got >= 0 && got != size {
		return nil, fmt.Errorf("%d of %d bytes: %w", got, size, errTruncated)
	}
	return body, nil
}

// buffer is memory of a fixed size that parts are written to in any order.
type buffer []byte

func (b buffer) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 || off+int64(len(p)) > int64(len(b)) {
		return 0, io.ErrShortBuffer
	}
	return copy(b[off:], p), nil
}

// Put implements Store. The server verifies the SHA-256 of what it receives, of every part of a large object.
func (b *bucket) Put(ctx context.Context, key string, body []byte) (bool, error) {
	head, err := b.api.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.name, Key: aws.String(b.prefix + key)})
	if err == nil && contentLength(head.ContentLength) == int64(len(body)) {
		return false, nil
	}
	if err != nil {
		if err = b.failed("look for", key, err); !errors.Is(err, ErrNotFound) {
			return false, err
		}
	}
	if err := b.Overwrite(ctx, key, body); err != nil {
		return false, err
	}
	return true, nil
}

// Overwrite implements Store.
func (b *bucket) Overwrite(ctx context.Context, key string, body []byte) error {
	_, err := b.transfer.UploadObject(ctx, &transfermanager.UploadObjectInput{
		Bucket: &b.name, Key: aws.String(b.prefix + key), Body: bytes.NewReader(body),
		ContentLength:     aws.Int64(int64(len(body))),
		ContentType:       aws.String(contentType(key)),
		ChecksumAlgorithm: tmtypes.ChecksumAlgorithmSha256,
	})
	if err != nil {
		return b.failed("write", key, err)
	}
	return nil
}

func contentType(key string) string {
	if strings.HasSuffix(key, bitmapSuffix) {
		return "application/octet-stream"
	}
	return "application/json"
}

// Replace implements Store by a conditional PUT.
func (b *bucket) Replace(ctx context.Context, key string, body []byte, tag string) (string, error) {
	if err := b.probe(ctx); err != nil {
		return "", err
	}
	newTag, err := b.put(ctx, key, body, tag)
	if err == nil {
		return newTag, nil
	}
	err = b.failed("replace", key, err)
	if lostRace(err, tag) {
		err = fmt.Errorf("%w: %w", ErrLostRace, err)
	}
	return "", err
}

// put is one conditional PUT.
func (b *bucket) put(ctx context.Context, key string, body []byte, tag string) (string, error) {
	input := &s3.PutObjectInput{
		Bucket: &b.name, Key: aws.String(b.prefix + key), Body: bytes.NewReader(body),
		ContentType:       aws.String(contentType(key)),
		CacheControl:      aws.String("no-cache"),
		ChecksumAlgorithm: types.ChecksumAlgorithmSha256,
	}
	if tag == "" {
		input.IfNoneMatch = aws.String("*")
	} else {
		input.IfMatch = &tag
	}
	out, err := b.api.PutObject(ctx, input)
	if err != nil {
		return "", err
	}
	return aws.ToString(out.ETag), nil
}

// probeKey is an object that is written before the first conditional write of a
// process, and never read.
const probeKey = "probe.json"

// ErrNoConditions: the server stores what it must not.
var ErrNoConditions = errors.New("this S3 server ignores conditional writes (If-Match, If-None-Match): two publishers would overwrite each other unseen, and nothing is published")

// probe finds out whether the server heeds conditions: with an object that is
// there it must refuse to create it, and to replace another version of it.
func (b *bucket) probe(ctx context.Context) error {
	b.probing.Lock()
	defer b.probing.Unlock()
	if b.probed {
		return nil
	}
	body := []byte("{}\n")
	if err := b.Overwrite(ctx, probeKey, body); err != nil {
		return err
	}
	for _, tag := range []string{"", `"00000000000000000000000000000000"`} {
		_, err := b.put(ctx, probeKey, body, tag)
		if err == nil {
			return fmt.Errorf("%s: %w", b.location, ErrNoConditions)
		}
		if err = b.failed("probe conditional writes with", probeKey, err); !lostRace(err, tag) {
			return err
		}
	}
	b.probed = true
	return nil
}

// lostRace: the condition failed (412), another conditional write was under way (409), or the object that
// was there when its tag was read is gone (404; also the answer for a missing bucket, which has no tag).
func lostRace(err error, tag string) bool {
	if errors.Is(err, ErrNotFound) {
		return tag != ""
	}
	var r *refusal
	return errors.As(err, &r) && (r.status == http.StatusConflict || r.status == http.StatusPreconditionFailed)
}

func (b *bucket) List(ctx context.Context, prefix string) ([]Object, error) {
	var list []Object
	pages := s3.NewListObjectsV2Paginator(b.api, &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: aws.String(b.prefix + prefix)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, b.failed("list", prefix, err)
		}
		for _, o := range page.Contents {
			key := strings.TrimPrefix(aws.ToString(o.Key), b.prefix)
			list = append(list, Object{Key: key, SizeBytes: aws.ToInt64(o.Size), ChangedAt: aws.ToTime(o.LastModified)})
		}
	}
	return list, nil
}

func (b *bucket) Delete(ctx context.Context, key string) error {
	_, err := b.api.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.name, Key: aws.String(b.prefix + key)})
	if err != nil {
		if err = b.failed("delete", key, err); errors.Is(err, ErrNotFound) {
			return nil
		}
	}
	return err
}
