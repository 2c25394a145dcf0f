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

// A Failure is an error that the caller of the API receives.
type Failure struct {
	api.Refusal               // content of the response body
	RetryAfter  time.Duration // 0: no header Retry-After; each status 503 has the header
	Cause       error         // cause for operators; nil: no cause beyond Message
	Unavailable []uint32      // users whose set changes may not be stored; see api.Error
	// UnavailableIDs lists the canonical ids of the users whose changes may not be stored. UnavailableIDs is empty if
	// the call listed dense ids as JSON numbers.
	UnavailableIDs []string
	// UnavailableImages lists those users whose changes may not be stored and whom the call listed by id image (64-bit
	// keyed hash).
	UnavailableImages []string
}

func (f *Failure) Error() string { return string(f.Code) + ": " + f.Message }

// Unwrap returns the cause of the failure.
func (f *Failure) Unwrap() error { return f.Cause }

// NewFailure returns a failure that does not concern a single field of the request. If the HTTP status of the failure
// is 503, NewFailure sets the header Retry-After to one second.
func NewFailure(code api.Code, format string, args ...any) *Failure {
	f := &Failure{Refusal: api.Refusal{Code: code, Message: fmt.Sprintf(format, args...)}}
	if code.Status() == http.StatusServiceUnavailable {
		f.RetryAfter = time.Second
	}
	return f
}

// FieldFailure returns a failure that concerns one field of the request. The error message of a FieldFailure begins
// with the name of the field.
func FieldFailure(code api.Code, field, format string, args ...any) *Failure {
	f := NewFailure(code, "%s: %s", field, fmt.Sprintf(format, args...))
	f.Field = field
	return f
}

// The function Invalid returns the failure of a request in which one field has an invalid value.
func Invalid(field, format string, args ...any) *Failure {
	return FieldFailure(api.CodeInvalidRequest, field, format, args...)
}

// The function Overloaded returns the failure of a call that would exceed a limit for all simultaneous calls together.
func Overloaded(what string) *Failure {
	return NewFailure(api.CodeOverloaded, "%s: try again", what)
}

// StoreFailure returns the failure of a call for which the store returned an error. If the context of the call has
// ended, the error message suggests a retry. If the context of the call has not ended, the error message refers to
// /v1/status.
func StoreFailure(ctx context.Context, err error) *Failure {
	message := "the store could not answer: /v1/status shows the reason"
	if ctx.Err() != nil {
		message = "the store could not answer in time: try again"
	}
	f := NewFailure(api.CodeUnavailable, "%s", message)
	f.Cause = err
	return f
}

// AuditFailure returns the failure of a call for which the service could not read the audit (record of all decisions).
func AuditFailure(ctx context.Context, err error) *Failure {
	f := StoreFailure(ctx, err)
	f.Message = "the audit could not be read: /v1/status shows the reason"
	if ctx.Err() != nil {
		f.Message = "the audit could not be read in time: try again"
	}
	return f
}

// FailureOf converts an error to the failure that the caller receives. If the error is not a Failure, FailureOf returns
// an internal error without the text of the error.
func FailureOf(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	f = NewFailure(api.CodeInternal, "internal error: it has been logged")
	f.Cause = err
	return f
}

// Clip converts the bytes b to a text for an error message, and shortens a text of more than 40 bytes.
func Clip(b []byte) string {
	if len(b) > 40 {
		return string(bytes.ToValidUTF8(b[:40], []byte("?"))) + "…"
	}
	return string(bytes.ToValidUTF8(b, []byte("?")))
}
