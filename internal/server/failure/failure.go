// Package failure is what a caller is told when its call is refused: a code,
// which has one HTTP status, a sentence, and the field at fault.
package failure

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Code is the stable name of an error, for programs.
type Code string

// The codes. Each has one status, see Statuses.
const (
	CodeInvalidRequest   Code = "invalid_request"
	CodeUnauthorized     Code = "unauthorized"
	CodeForbidden        Code = "forbidden"
	CodeNotFound         Code = "not_found"
	CodeMethodNotAllowed Code = "method_not_allowed"
	CodeTimeout          Code = "request_timeout"
	CodeMisdirected      Code = "misdirected"
	CodeHeaderTooLarge   Code = "header_too_large"
	CodeTooLarge         Code = "too_large"
	CodeUnsupportedMedia Code = "unsupported_media_type"
	CodeRateLimited      Code = "rate_limited"
	CodeOverloaded       Code = "overloaded"
	CodeUnavailable      Code = "unavailable"
	CodeInternal         Code = "internal"
)

// Statuses is the one table from code to HTTP status.
var Statuses = map[Code]int{
	CodeInvalidRequest:   http.StatusBadRequest,
	CodeUnauthorized:     http.StatusUnauthorized,
	CodeForbidden:        http.StatusForbidden,
	CodeNotFound:         http.StatusNotFound,
	CodeMethodNotAllowed: http.StatusMethodNotAllowed,
	CodeTimeout:          http.StatusRequestTimeout,
	CodeMisdirected:      http.StatusMisdirectedRequest,
	CodeHeaderTooLarge:   http.StatusRequestHeaderFieldsTooLarge,
	CodeTooLarge:         http.StatusRequestEntityTooLarge,
	CodeUnsupportedMedia: http.StatusUnsupportedMediaType,
	CodeRateLimited:      http.StatusTooManyRequests,
	CodeOverloaded:       http.StatusServiceUnavailable,
	CodeUnavailable:      http.StatusServiceUnavailable,
	CodeInternal:         http.StatusInternalServerError,
}

// Failure is an error that a caller is told.
type Failure struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`         // for people; names field, value and rule
	Field   string `json:"field,omitempty"` // the request's field at fault, as in user_ids[3]

	RetryAfter time.Duration `json:"-"` // 0: no Retry-After
	Cause      error         `json:"-"` // for operators; nil when the message says it all
}

func (f *Failure) Error() string { return string(f.Code) + ": " + f.Message }

// Unwrap is the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// New is a failure that is no single field's.
func New(code Code, format string, args ...any) *Failure {
	return &Failure{Code: code, Message: fmt.Sprintf(format, args...)}
}

// OfField is the failure of a field: the message begins with its name.
func OfField(code Code, field, format string, args ...any) *Failure {
	return &Failure{Code: code, Field: field, Message: field + ": " + fmt.Sprintf(format, args...)}
}

// Invalid is the failure of a field whose value breaks a rule.
func Invalid(field, format string, args ...any) *Failure {
	return OfField(CodeInvalidRequest, field, format, args...)
}

// Overloaded is the failure of a call beyond the bounds of all calls together.
func Overloaded(what string) *Failure {
	f := New(CodeOverloaded, "%s: try again", what)
	f.RetryAfter = time.Second
	return f
}

// OfStore is what a caller is told when the store could not answer.
func OfStore(err error) *Failure {
	f := New(CodeUnavailable, "the store could not answer in time: try again")
	f.RetryAfter, f.Cause = time.Second, err
	return f
}

// Of is err as callers are told it. What is not a failure is internal, and its
// text stays here.
func Of(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	return &Failure{Code: CodeInternal, Message: "internal error: it has been logged", Cause: err}
}

// Clip is b as text for a message, at most 40 bytes of it.
func Clip(b []byte) string {
	if len(b) > 40 {
		return string(bytes.ToValidUTF8(b[:40], []byte("?"))) + "…"
	}
	return string(bytes.ToValidUTF8(b, []byte("?")))
}
