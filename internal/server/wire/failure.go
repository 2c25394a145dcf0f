package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"capper/client/api"
)

// Failure is an error that the caller of the API receives.
type Failure struct {
	api.Refusal               // the content of the answer
	RetryAfter  time.Duration // 0: the answer has no Retry-After; every 503 has one
	Cause       error         // for operators; nil when the message is complete
	Unavailable []uint32      // users whose changes may not be stored; see api.Error
	// UnavailableIDs are these users by their canonical ids, unless all ids of the call are dense ids as numbers.
	UnavailableIDs []string
	// UnavailableImages are those of these users whom the call named by their images.
	UnavailableImages []string
}

func (f *Failure) Error() string { return string(f.Code) + ": " + f.Message }

// Unwrap returns the cause of the failure.
func (f *Failure) Unwrap() error { return f.Cause }

// NewFailure returns a failure that belongs to no single field. A caller may repeat a call with status 503 after a
// second.
func NewFailure(code api.Code, format string, args ...any) *Failure {
	f := &Failure{Refusal: api.Refusal{Code: code, Message: fmt.Sprintf(format, args...)}}
	if code.Status() == http.StatusServiceUnavailable {
		f.RetryAfter = time.Second
	}
	return f
}

// FieldFailure returns the failure of a request field. The message begins with the field's name.
func FieldFailure(code api.Code, field, format string, args ...any) *Failure {
	f := NewFailure(code, "%s: %s", field, fmt.Sprintf(format, args...))
	f.Field = field
	return f
}

// Invalid returns the failure of a field whose value breaks a rule.
func Invalid(field, format string, args ...any) *Failure {
	return FieldFailure(api.CodeInvalidRequest, field, format, args...)
}

// Overloaded returns the failure of a call that exceeds the limits of all calls together.
func Overloaded(what string) *Failure {
	return NewFailure(api.CodeOverloaded, "%s: try again", what)
}

// StoreFailure returns the failure of a call that the store could not answer. When the context has ended, the message
// suggests a retry; otherwise it points to /v1/status.
func StoreFailure(ctx context.Context, err error) *Failure {
	message := "the store could not answer: /v1/status shows the reason"
	if ctx.Err() != nil {
		message = "the store could not answer in time: try again"
	}
	f := NewFailure(api.CodeUnavailable, "%s", message)
	f.Cause = err
	return f
}

// AuditFailure returns the failure of a call for which the audit could not be read.
func AuditFailure(ctx context.Context, err error) *Failure {
	f := StoreFailure(ctx, err)
	f.Message = "the audit could not be read: /v1/status shows the reason"
	if ctx.Err() != nil {
		f.Message = "the audit could not be read in time: try again"
	}
	return f
}

// FailureOf converts an error to the failure that callers receive. An error that is no Failure becomes an internal
// error, whose text is hidden from callers.
func FailureOf(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	f = NewFailure(api.CodeInternal, "internal error: it has been logged")
	f.Cause = err
	return f
}

// Clip returns at most 40 bytes of b as text for an error message.
func Clip(b []byte) string {
	if len(b) > 40 {
		return string(bytes.ToValidUTF8(b[:40], []byte("?"))) + "…"
	}
	return string(bytes.ToValidUTF8(b, []byte("?")))
}
