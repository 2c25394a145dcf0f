package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// If a connection breaks during a download, an s3Object requests the missing bytes, at most s3Breaks times in a row.
// After patientBytes further bytes have arrived, an s3Object counts broken connections from 0 again. The constant
// s3FirstPause is the pause before the first request for missing bytes; the pause doubles with each further request.
const (
	s3Breaks     = 5
	s3FirstPause = 100 * time.Millisecond
	patientBytes = s3PartBytes
)

// An s3Object reads one S3 object from its first to its last byte, if necessary over several connections. The method
// Read returns io.EOF only after the announced number of bytes has arrived. All returned bytes come from one version of
// the S3 object.
type s3Object struct {
	ctx    context.Context
	bucket *bucket
	key    string

	body   io.ReadCloser // response body; nil between two requests
	tag    string        // ETag of the version; empty if the server returns no ETag
	size   int64
	at     int64 // number of bytes read so far
	dated  time.Time
	breaks int   // number of broken connections in a row; see patientBytes
	since  int64 // value of at when the last connection broke
}

// The method start sends the first request for the S3 object. The response to the first request determines the version
// and the size of the S3 object.
func (o *s3Object) start() error {
	out, err := o.bucket.api.GetObject(o.ctx, &s3.GetObjectInput{Bucket: &o.bucket.name, Key: &o.key})
	if err != nil {
		return o.bucket.failed("read", o.key, err)
	}
	o.body, o.tag, o.size = out.Body, aws.ToString(out.ETag), contentLength(out.ContentLength)
	o.dated = aws.ToTime(out.LastModified)
	if o.size < 0 {
		return errors.Join(o.bucket.failed("read", o.key, errNoLength), o.Close())
	}
	return nil
}

var errNoLength = errors.New(
	"the S3 server does not send the length of the object, so a broken connection cannot be detected")

// Read implements io.Reader.
func (o *s3Object) Read(p []byte) (int, error) {
	for {
		if o.body == nil {
			if err := o.resume(); err != nil {
				return 0, err
			}
		}
		n, err := o.body.Read(p)
		if o.at += int64(n); o.at > o.size {
			return 0, o.bucket.failed("read", o.key,
				fmt.Errorf("the S3 server sent more than the announced %d bytes", o.size))
		}
		switch {
		case err == nil, err == io.EOF && o.at == o.size:
			return n, err
		case o.at == o.size || o.ctx.Err() != nil: // all bytes arrived, but are faulty, for example a wrong checksum
			return n, o.bucket.failed("read", o.key, err)
		}
		if err := o.noteBreak(err); err != nil || n > 0 {
			return n, err
		}
	}
}

// noteBreak closes a response body that ended too early. If too many response bodies have ended too early, noteBreak
// returns an error.
func (o *s3Object) noteBreak(err error) error {
	if o.at-o.since >= patientBytes {
		o.breaks = 0
	}
	o.breaks, o.since = o.breaks+1, o.at
	_ = o.Close() // the connection is already broken
	if o.breaks <= s3Breaks {
		return nil
	}
	return o.bucket.failed("read", o.key, fmt.Errorf("connection ended after %d of %d bytes, %d times in a row: %w",
		o.at, o.size,
		o.breaks, err))
}

// errReplaced, errNoVersion and errOtherRange are reasons for which an s3Object cannot continue a download after a
// broken connection.
var (
	errReplaced  = errors.New("the object was replaced while it was read")
	errNoVersion = errors.New(
		"the download was interrupted, and without ETag and Last-Modified it cannot be continued safely")
	errOtherRange = errors.New("the S3 server sent a different byte range than requested")
)

// The method resume pauses after a broken connection, and then requests the missing bytes of the same version of the S3
// object.
func (o *s3Object) resume() error {
	select {
	case <-o.ctx.Done():
		return o.ctx.Err()
	case <-time.After(s3FirstPause << (o.breaks - 1)):
	}
	action := fmt.Sprintf("read on from byte %d of", o.at)
	if o.tag == "" && o.dated.IsZero() {
		return o.bucket.failed(action, o.key, errNoVersion)
	}
	input := &s3.GetObjectInput{Bucket: &o.bucket.name, Key: &o.key, Range: aws.String(fmt.Sprintf("bytes=%d-", o.at))}
	if o.tag != "" {
		input.IfMatch = &o.tag
	}
	out, err := o.bucket.api.GetObject(o.ctx, input)
	if err != nil {
		return o.notResumed(o.bucket.failed(action, o.key, err))
	}
	if err := o.sameVersion(out); err != nil {
		return errors.Join(o.bucket.failed(action, o.key, err), out.Body.Close())
	}
	o.body = out.Body
	return nil
}

// notResumed adds errReplaced to the error if the S3 server rejected the request for the missing bytes because the
// object has a new version.
func (o *s3Object) notResumed(err error) error {
	var refused *refusal
	if errors.As(err, &refused) && refused.status == http.StatusPreconditionFailed {
		return fmt.Errorf("%w: %w", err, errReplaced)
	}
	return err
}

// sameVersion checks that a response contains the missing bytes of the right version of the S3 object. The request for
// the missing bytes already has a condition on the version, but some servers and proxies ignore this condition.
func (o *s3Object) sameVersion(out *s3.GetObjectOutput) error {
	if tag := aws.ToString(out.ETag); tag != o.tag {
		return fmt.Errorf("%w: ETag is %s, but was %s", errReplaced, tag, o.tag)
	}
	if at := aws.ToTime(out.LastModified); o.tag == "" && !at.Equal(o.dated) {
		return fmt.Errorf("%w: Last-Modified is %s, but was %s", errReplaced, at, o.dated)
	}
	want := fmt.Sprintf("bytes %d-%d/%d", o.at, o.size-1, o.size)
	if got := aws.ToString(out.ContentRange); got != want && (got != "" || o.at > 0) {
		return fmt.Errorf("%w: Content-Range is %q, but must be %q", errOtherRange, got, want)
	}
	if got := contentLength(out.ContentLength); got != o.size-o.at {
		return fmt.Errorf("the S3 server must send the remaining %d bytes, got %d", o.size-o.at, got)
	}
	return nil
}

// ChangedAt returns the Last-Modified time of the S3 object.
func (o *s3Object) ChangedAt() time.Time { return o.dated }

// Close closes the body of the current response.
func (o *s3Object) Close() error {
	if o.body == nil {
		return nil
	}
	err := o.body.Close()
	o.body = nil
	return err
}
