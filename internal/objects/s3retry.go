package objects

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"capper/internal/trace"
)

// defaultStall is the default of S3Config.Stall: the maximum time for which a request to S3 may transfer no byte.
const defaultStall = time.Minute

// maxPause is the default of S3Config.MaxPause: the maximum pause between two attempts of a request.
const maxPause = 5 * time.Second

// setRetries configures how the AWS SDK retries requests. If cfg.Patient is true, the AWS SDK retries until the context
// of the request ends. If cfg.Patient is false, the AWS SDK makes its default number of attempts.
func setRetries(o *s3.Options, cfg S3Config) {
	o.Retryer = retry.NewStandard(func(s *retry.StandardOptions) {
		// Retry status 409 and 429, too: 409 means that another conditional write is in progress, and 429 that the
		// client sent too many requests.
		s.Retryables = append(s.Retryables, retry.RetryableHTTPStatusCode{
			Codes: map[int]struct{}{http.StatusConflict: {}, http.StatusTooManyRequests: {}}})
		s.MaxBackoff = cmp.Or(cfg.MaxPause, maxPause)
		if cfg.Patient {
			s.RateLimiter = ratelimit.None
		}
	})
	if cfg.Patient {
		o.RetryMaxAttempts = 0 // ignores AWS_MAX_ATTEMPTS
		o.Retryer = &telling{Retryer: o.Retryer, tell: cfg.Retrying}
		o.APIOptions = append(o.APIOptions, keepLastError)
	}
}

// The type "telling" is the aws.Retryer (retry policy) for requests that are retried until their context ends
// (S3Config.Patient). The type "telling" stores the error of the last attempt. Without the stored error, a request
// whose context ends during a pause between two attempts would report only the end of the context.
type telling struct {
	aws.Retryer
	tell func(error)
}

// MaxAttempts returns 0, so that the AWS SDK does not limit the number of attempts.
func (t *telling) MaxAttempts() int { return 0 }

// lastErrorKey is the context key for the last error of an S3 operation, which the type "telling" stores.
type lastErrorKey struct{}

// GetRetryToken stores the error of the failed attempt and calls S3Config.Retrying. The AWS SDK calls GetRetryToken
// before each pause.
func (t *telling) GetRetryToken(ctx context.Context, opErr error) (func(error) error, error) {
	if last, ok := ctx.Value(lastErrorKey{}).(*error); ok {
		*last = opErr
	}
	if t.tell != nil {
		t.tell(opErr)
	}
	return t.Retryer.GetRetryToken(ctx, opErr)
}

func keepLastError(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("KeepLastError", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		var last error
		out, metadata, err := next.HandleInitialize(context.WithValue(ctx, lastErrorKey{}, &last), in)
		if err != nil && last != nil && ctx.Err() != nil && !errors.Is(err, last) {
			err = fmt.Errorf("%w; before that: %w", err, last)
		}
		return out, metadata, err
	}), middleware.Before)
}

// The function "stalling" returns an HTTP client whose connections fail if they transfer no byte in either direction
// for the given time. The limit applies to the idle time of a connection, so requests with large bodies do not fail.
func stalling(limit time.Duration) *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithReadTimeout(0).WithTransportOptions(func(t *http.Transport) {
		dial := t.DialContext
		t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &stallConn{Conn: conn, limit: limit}, nil
		}
	})
}

// stallConn is a network connection that extends its deadline with every Read and every Write.
type stallConn struct {
	net.Conn
	limit time.Duration
}

func (c *stallConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.limit)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

// Write also extends the deadline of the Read that waits for the response to the written request.
func (c *stallConn) Write(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.limit)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// The function "tracing" adds the trace context of an operation to the headers of its S3 request. The signature of the
// S3 request does not cover the headers with the trace context.
func tracing(stack *middleware.Stack) error {
	return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("traces",
		func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
			middleware.FinalizeOutput, middleware.Metadata, error) {
			if r, ok := in.Request.(*smithyhttp.Request); ok {
				trace.Outgoing(ctx, r.Header)
			}
			return next.HandleFinalize(ctx, in)
		}), middleware.After)
}
