package objects

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
)

// The method "failed" converts an error of the AWS SDK to an error of package objects, and adds the action and the
// object. The method "failed" drops details that only the SDK's authors need. Every error except ErrNotFound and
// ErrNotModified becomes a StorageError.
func (b *bucket) failed(action, key string, err error) error {
	var response *awshttp.ResponseError
	var api smithy.APIError
	switch {
	case errors.As(err, &response) && response.HTTPStatusCode() == http.StatusNotModified:
		return ErrNotModified
	case errors.As(err, &api) && api.ErrorCode() == "NoSuchBucket":
		err = fmt.Errorf("%w: the bucket does not exist", ErrNotFound)
	case response != nil && response.HTTPStatusCode() == http.StatusNotFound:
		err = ErrNotFound
	case response != nil && api != nil:
		err = &StorageError{given(err, &refusal{status: response.HTTPStatusCode(), api: api})}
	case strings.Contains(err.Error(), "get credentials"): // the SDK has no type for this error
		err = &StorageError{fmt.Errorf(
			"S3 credentials are missing: "+
				"set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "+
				"or use a shared profile or the role of an instance (%w)", err)}
	default:
		err = &StorageError{err}
	}
	return fmt.Errorf("%s %s%s/%s%s: %w", action, s3Scheme, b.name, b.prefix, key, err)
}

// The function "given" returns an error with the error response of the S3 server. If the context ended before further
// attempts, the function "given" combines the error response with the context's error.
func given(err error, last *refusal) error {
	for _, ended := range []error{context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, ended) {
			return fmt.Errorf("%w; before that: %w", ended, last)
		}
	}
	return last
}

// A refusal is an error response of the S3 server.
type refusal struct {
	status int
	api    smithy.APIError
}

// notRights lists the S3 error codes of 403 responses that are due to the credentials or the clock, and not to a
// missing permission.
var notRights = []string{"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken",
	"RequestTimeTooSkewed"}

// IsDenied reports whether the S3 server recognised the caller but denied the request because of missing permissions.
func IsDenied(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.status == http.StatusForbidden && !slices.Contains(notRights, r.api.ErrorCode())
}

func (r *refusal) Error() string {
	return fmt.Sprintf("status %d, %s: %s", r.status, r.api.ErrorCode(), r.api.ErrorMessage())
}
