// Package failure is what a caller is told when its call is refused: a code of
// package api, a sentence, and the field at fault; and what operators are told
// of it.
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

// Failure is an error that a caller is told.
type Failure struct {
	api.Refusal               // what the answer says
	RetryAfter  time.Duration // 0: no Retry-After; every 503 has one
	Cause       error         // for operators; nil when the message says it all
}

func (f *Failure) Error() string { return string(f.Code) + ": " + f.Message }

// Unwrap is the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// New is a failure that does not belong to a single field. One whose status is 503 may be repeated after a second.
func NewFailure(code api.Code, format string, args ...any) *Failure {
	f := &Failure{Refusal: api.Refusal{Code: code, Message: fmt.Sprintf(format, args...)}}
	if code.Status() == http.StatusServiceUnavailable {
		f.RetryAfter = time.Second
	}
	return f
}

// OfField is the failure of a field: the message begins with its name.
func FieldFailure(code api.Code, field, format string, args ...any) *Failure {
	f := NewFailure(code, "%s: %s", field, fmt.Sprintf(format, args...))
	f.Field = field
	return f
}

// Invalid is the failure of a field whose value breaks a rule.
func Invalid(field, format string, args ...any) *Failure {
	return FieldFailure(api.CodeInvalidRequest, field, format, args...)
}

// Overloaded is the failure of a call beyond the bounds of all calls together.
func Overloaded(what string) *Failure {
	return NewFailure(api.CodeOverloaded, "%s: try again", what)
}

// OfStore is what a caller is told when the store could not answer a call with
// that context: when its time is not up, trying again may be of no use.
func StoreFailure(ctx context.Context, err error) *Failure {
	message := "the store could not answer: /v1/status shows the reason"
	if ctx.Err() != nil {
		message = "the store could not answer in time: try again"
	}
	f := NewFailure(api.CodeUnavailable, "%s", message)
	f.Cause = err
	return f
}

// OfAudit is what a caller is told when the audit could not be read.
func AuditFailure(ctx context.Context, err error) *Failure {
	f := StoreFailure(ctx, err)
	f.Message = "the audit could not be read: /v1/status shows the reason"
	if ctx.Err() != nil {
		f.Message = "the audit could not be read in time: try again"
	}
	return f
}

// Of is err as callers are told it. What is not a failure is internal, and its
// text stays here.
func FailureOf(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	f = NewFailure(api.CodeInternal, "internal error: it has been logged")
	f.Cause = err
	return f
}

// Clip is b as text for a message, at most 40 bytes of it.
func Clip(b []byte) string {
	if len(b) > 40 {
		return string(bytes.ToValidUTF8(b[:40], []byte("?"))) + "…"
	}
	return string(bytes.ToValidUTF8(b, []byte("?")))
}
