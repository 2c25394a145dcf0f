package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	tmtypes "github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// Put implements Location. The S3 server verifies the SHA-256 of the bytes that Put sends; for a large object, the
// SHA-256 of each part.
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

// Overwrite implements Location.
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
	if strings.HasSuffix(key, ".json") {
		return "application/json"
	}
	return "application/octet-stream"
}

// Delete implements Location.
func (b *bucket) Delete(ctx context.Context, key string) error {
	_, err := b.api.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.name, Key: aws.String(b.prefix + key)})
	if err != nil {
		if err = b.failed("delete", key, err); errors.Is(err, ErrNotFound) {
			return nil
		}
	}
	return err
}

// Replace implements Location with a conditional PUT.
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

// The method put sends one conditional PUT request to S3.
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

// ProbeKey is the key of a test object. Before its first conditional write, each process writes the test object into an
// S3 location to check that the server honours conditions. No process reads the test object.
const ProbeKey = "probe.json"

// ErrNoConditions reports that the S3 server ignores the conditions of conditional writes. On a server that ignores the
// conditions, two publishers of segments could overwrite each other's objects.
var ErrNoConditions = errors.New(
	"this S3 server ignores conditional writes (If-Match, If-None-Match): " +
		"nothing was published, because two publishers could overwrite each other")

// The method probe checks that the S3 server honours conditional writes. A suitable S3 server refuses to create an
// existing object, and to replace an object with another ETag.
func (b *bucket) probe(ctx context.Context) error {
	b.probing.Lock()
	defer b.probing.Unlock()
	if b.probed {
		return nil
	}
	body := []byte("{}\n")
	if err := b.Overwrite(ctx, ProbeKey, body); err != nil {
		return err
	}
	for _, tag := range []string{"", `"00000000000000000000000000000000"`} {
		_, err := b.put(ctx, ProbeKey, body, tag)
		if err == nil {
			return fmt.Errorf("%s: %w", b.location, ErrNoConditions)
		}
		if err = b.failed("probe conditional writes with", ProbeKey, err); !lostRace(err, tag) {
			return err
		}
	}
	b.probed = true
	return nil
}

// lostRace reports whether an error of a conditional write means that another process has changed the object. The HTTP
// status 412 means that the condition of the write failed. The HTTP status 409 means that another conditional write was
// in progress. The HTTP status 404 means that the object has disappeared since the caller read the tag. If the argument
// "tag" is "", the HTTP status 404 means that the bucket does not exist, so lostRace returns false.
func lostRace(err error, tag string) bool {
	if errors.Is(err, ErrNotFound) {
		return tag != ""
	}
	var r *refusal
	return errors.As(err, &r) && (r.status == http.StatusConflict || r.status == http.StatusPreconditionFailed)
}
