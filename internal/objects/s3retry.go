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

// defaultStall is how long a request to S3 may stand still.
const defaultStall = time.Minute

// maxPause is the longest pause between two attempts of a patient request.
const maxPause = 5 * time.Second

// setRetries makes the SDK try again what may succeed then: as often as it does
// by itself, or, where cfg is Patient, until the context ends.
func setRetries(o *s3.Options, cfg S3Config) {
	o.Retryer = retry.NewStandard(func(s *retry.StandardOptions) {
		// 409: another conditional write is under way. 429: too many requests.
		s.Retryables = append(s.Retryables, retry.RetryableHTTPStatusCode{
			Codes: map[int]struct{}{http.StatusConflict: {}, http.StatusTooManyRequests: {}}})
		s.MaxBackoff = cmp.Or(cfg.MaxPause, maxPause)
		if cfg.Patient {
			s.RateLimiter = ratelimit.None
		}
	})
	if cfg.Patient {
		o.RetryMaxAttempts = 0 // of AWS_MAX_ATTEMPTS
		o.Retryer = &telling{Retryer: o.Retryer, tell: cfg.Retrying}
		o.APIOptions = append(o.APIOptions, keepLastError)
	}
}

// telling is a retryer without an end that keeps the error of the last attempt,
// because the SDK says only that the context has ended if it ends in a pause.
type telling struct {
	aws.Retryer
	tell func(error)
}

// MaxAttempts is no bound.
func (t *telling) MaxAttempts() int { return 0 }

// lastErrorKey is the key of the context under which an operation's last error is kept.
type lastErrorKey struct{}

// GetRetryToken is called before each pause.
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

// stalling makes a client whose connections fail when no byte moves on them,
// in either direction, for so long: the time limit of each request, however
// large what it moves.
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

// stallConn moves its deadline with every byte.
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

// Write also moves the deadline of the Read that waits for the answer.
func (c *stallConn) Write(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.limit)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// tracing passes the trace that a call belongs to on, in headers that are not signed.
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
