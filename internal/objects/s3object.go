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

// A body that breaks off is asked for again so often, as long as no more of it
// arrives than patientBytes in between; each time after a longer pause.
const (
	s3Breaks     = 5
	s3FirstPause = 100 * time.Millisecond
	patientBytes = s3PartBytes
)

// s3Object reads one object from its first byte to its last. Only as many bytes
// as the server announced, all of one version of the object, are its end.
type s3Object struct {
	ctx    context.Context
	bucket *bucket
	key    string

	body   io.ReadCloser // nil between two requests
	tag    string        // of the version that is read; empty where the server says none
	size   int64
	at     int64 // bytes read so far
	dated  time.Time
	breaks int   // since patientBytes have arrived
	since  int64 // at, at the last break
}

// start sends the first request, which settles version and size.
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

var errNoLength = errors.New("the S3 server does not send the length of the object, so a broken connection cannot " +
	"be detected")

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
			return 0, o.bucket.failed("read", o.key, fmt.Errorf("object has more than the announced %d bytes", o.size))
		}
		switch {
		case err == nil, err == io.EOF && o.at == o.size:
			return n, err
		case o.at == o.size || o.ctx.Err() != nil: // all is there but not right, such as a wrong checksum
			return n, o.bucket.failed("read", o.key, err)
		}
		if err := o.noteBreak(err); err != nil || n > 0 {
			return n, err
		}
	}
}

// noteBreak gives up the body that ended early, and the object after too many of them.
func (o *s3Object) noteBreak(err error) error {
	if o.at-o.since >= patientBytes {
		o.breaks = 0
	}
	o.breaks, o.since = o.breaks+1, o.at
	_ = o.Close() // of what is broken already
	if o.breaks <= s3Breaks {
		return nil
	}
	return o.bucket.failed("read", o.key, fmt.Errorf("connection ended after %d of %d bytes, %d times in a row: %w",
		o.at, o.size,
		o.breaks, err))
}

// Why an object is not read on.
var (
	errReplaced  = errors.New("the object was replaced while it was read")
	errNoVersion = errors.New("the download was interrupted, and without ETag and Last-Modified it cannot be " +
		"continued safely")
	errOtherRange = errors.New("the S3 server sent another range than requested")
)

// resume asks for the rest of the same version.
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

// notResumed says what the server's refusal to read on means.
func (o *s3Object) notResumed(err error) error {
	var refused *refusal
	if errors.As(err, &refused) && refused.status == http.StatusPreconditionFailed {
		return fmt.Errorf("%w: %w", err, errReplaced)
	}
	return err
}

// sameVersion checks that an answer holds the rest of the version that was begun. The condition
// of the request is not enough: there are servers and proxies that do not know it.
func (o *s3Object) sameVersion(out *s3.GetObjectOutput) error {
	if tag := aws.ToString(out.ETag); tag != o.tag {
		return fmt.Errorf("%w: ETag is %s, but was %s", errReplaced, tag, o.tag)
	}
	if at := aws.ToTime(out.LastModified); o.tag == "" && !at.Equal(o.dated) {
		return fmt.Errorf("%w: Last-Modified is %s, but was %s", errReplaced, at, o.dated)
	}
	want := fmt.Sprintf("bytes %d-%d/%d", o.at, o.size-1, o.size)
	if got := aws.ToString(out.ContentRange); got != want && (got != "" || o.at > 0) {
		return fmt.Errorf("%w: Content-Range is %q and should be %q", errOtherRange, got, want)
	}
	if got := contentLength(out.ContentLength); got != o.size-o.at {
		return fmt.Errorf("%d bytes follow, but should be %d", got, o.size-o.at)
	}
	return nil
}

// ChangedAt is the object's Last-Modified.
func (o *s3Object) ChangedAt() time.Time { return o.dated }

// Close ends the request that is under way.
func (o *s3Object) Close() error {
	if o.body == nil {
		return nil
	}
	err := o.body.Close()
	o.body = nil
	return err
}
