package objects

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	tmtypes "github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Put implements Location. The server verifies the SHA-256 of what it receives, of every part of a large object.
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
