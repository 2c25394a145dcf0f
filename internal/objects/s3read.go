package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// ReadTagged implements Source. The returned tag is the ETag of the S3 object.
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
	body, err := readAll(out.Body, contentLength(out.ContentLength), MaxDocumentBytes)
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

// Read implements Source. If the S3 object is larger than one part, Read uses the length and the ETag from the first
// response, and requests the parts in parallel.
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
		return nil, fmt.Errorf("read %d of %d bytes: %w", got, size, errTruncated)
	}
	return body, nil
}

// A buffer is memory of a fixed size for the parts of an S3 object, which arrive in any order.
type buffer []byte

func (b buffer) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 || off+int64(len(p)) > int64(len(b)) {
		return 0, io.ErrShortBuffer
	}
	return copy(b[off:], p), nil
}

// List implements Source.
func (b *bucket) List(ctx context.Context, prefix string) ([]Object, error) {
	var list []Object
	pages := s3.NewListObjectsV2Paginator(b.api, &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: aws.String(b.prefix +
		prefix)})
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

// ServerDate returns the present time by the clock of a location's S3 server, rounded down to the second. ServerDate
// sends a HEAD request for the object key and reads the Date header of the response, even if the response is an error.
// If the location is a directory, ServerDate returns ok = false.
func ServerDate(ctx context.Context, at Location, key string) (date time.Time, ok bool, err error) {
	b, ok := at.(*bucket)
	if !ok {
		return date, false, nil
	}
	out, err := b.api.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.name, Key: aws.String(b.prefix + key)})
	var refused *awshttp.ResponseError
	text := ""
	switch {
	case err == nil:
		if answer, ok := awsmiddleware.GetRawResponse(out.ResultMetadata).(*smithyhttp.Response); ok {
			text = answer.Header.Get("Date")
		}
	case errors.As(err, &refused) && refused.Response != nil:
		text = refused.Response.Header.Get("Date")
	default:
		return date, true, b.failed("ask for the date with", key, err)
	}
	date, err = http.ParseTime(text)
	if err != nil {
		err = fmt.Errorf("%s: the response of the S3 server has no valid date: %w", b.location, err)
	}
	return date, true, err
}
