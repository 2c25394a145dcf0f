package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// Code is the stable name of an error, for programs.
type Code string

// The codes. Each has one status, see statuses.
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

// statuses is the one table from code to HTTP status.
var statuses = map[Code]int{
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

// failure is an error that a caller is told.
type failure struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`         // for people; names field, value and rule
	Field   string `json:"field,omitempty"` // the request's field at fault, as in user_ids[3]

	retryAfter time.Duration // 0: no Retry-After
	cause      error         // for operators; nil when the message says it all
}

func (f *failure) Error() string { return string(f.Code) + ": " + f.Message }
func (f *failure) Unwrap() error { return f.cause }

// invalid is the failure of a field: the message begins with its name.
func invalid(field, format string, args ...any) *failure {
	return fieldFailure(CodeInvalidRequest, field, format, args...)
}

func fieldFailure(code Code, field, format string, args ...any) *failure {
	return &failure{Code: code, Field: field, Message: field + ": " + fmt.Sprintf(format, args...)}
}

func fail(code Code, format string, args ...any) *failure {
	return &failure{Code: code, Message: fmt.Sprintf(format, args...)}
}

// storeFailure is what a caller is told when the store could not answer.
func storeFailure(err error) *failure {
	f := fail(CodeUnavailable, "the store could not answer in time: try again")
	f.retryAfter, f.cause = time.Second, err
	return f
}

// asFailure is err as callers are told it. What is no failure is internal, and
// its text stays here.
func asFailure(err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	return &failure{Code: CodeInternal, Message: "internal error: it has been logged", cause: err}
}

func (f *failure) write(w http.ResponseWriter) {
	if f.retryAfter > 0 {
		w.Header().Set("Retry-After", wholeSeconds(f.retryAfter))
	}
	if f.Code == CodeUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="capper"`)
	}
	body, err := json.Marshal(map[string]*failure{"error": f})
	if err != nil { // a struct of strings always encodes
		body = nil
	}
	writeBody(w, statuses[f.Code], append(body, '\n'))
}

// wholeSeconds is d in seconds, rounded up.
func wholeSeconds(d time.Duration) string {
	return strconv.FormatInt(int64(math.Ceil(d.Seconds())), 10)
}

func writeBody(w http.ResponseWriter, status int, body []byte) {
	writeHeader(w, status, len(body))
	_, _ = w.Write(body) // a caller that has gone needs no answer
}

func writeHeader(w http.ResponseWriter, status, length int) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(length))
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
}

func writeJSON(w http.ResponseWriter, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode response: %w", err)
	}
	writeBody(w, http.StatusOK, append(body, '\n'))
	return nil
}
