package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"capper/client/api"
)

// An Error has one of these codes.
const (
	CodeInvalidRequest   = api.CodeInvalidRequest
	CodeUnauthorized     = api.CodeUnauthorized
	CodeForbidden        = api.CodeForbidden
	CodeNotFound         = api.CodeNotFound
	CodeConflict         = api.CodeConflict // the service is not set up for the call
	CodeGone             = api.CodeGone     // an audience's generation is not kept any more
	CodeMethodNotAllowed = api.CodeMethodNotAllowed
	CodeTimeout          = api.CodeTimeout
	CodeTooLarge         = api.CodeTooLarge
	CodeUnsupportedMedia = api.CodeUnsupportedMedia
	CodeMisdirected      = api.CodeMisdirected
	CodeHeaderTooLarge   = api.CodeHeaderTooLarge
	CodeRateLimited      = api.CodeRateLimited
	CodeTooManyRecords   = api.CodeTooManyRecords // permits: too many remembered requests or logs of messages
	CodeOverloaded       = api.CodeOverloaded
	CodeUnavailable      = api.CodeUnavailable
	CodeInternal         = api.CodeInternal
)

// Error is a refusal by the service.
type Error struct {
	Status     int           // HTTP status
	Code       string        // one of the codes; "" when the answer was not capper's
	Message    string        // for people
	Field      string        // field of the request at fault; "" for none
	Column     int           // where in the text of Field the fault is, in characters from 1; 0: no such place
	RetryAfter time.Duration // 0: the service did not say
	RequestID  string        // by which the service's log is searched; "": the service did not say
}

func (e *Error) Error() string {
	if e.Code == "" {
		return e.named(fmt.Sprintf("status %d: %s", e.Status, e.Message))
	}
	return e.named(fmt.Sprintf("%s: %s", e.Code, e.Message))
}

// named adds the request id to the text, so that a caller can ask the service's operators about the request.
func (e *Error) named(text string) string {
	if e.RequestID == "" {
		return text
	}
	return text + " (request " + e.RequestID + ")"
}

// HasCode reports whether err is, or wraps, an Error with the code.
func HasCode(err error, code string) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// errorOf decodes the error in an answer.
func errorOf(response *http.Response, body []byte) *Error {
	e := &Error{Status: response.StatusCode, RequestID: response.Header.Get("X-Request-Id")}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds >= 0 {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	var answer api.Error
	if json.Unmarshal(body, &answer) == nil && answer.Error.Code != "" {
		e.Code, e.Message = string(answer.Error.Code), answer.Error.Message
		e.Field, e.Column = answer.Error.Field, answer.Error.Column
		return e
	}
	e.Message = http.StatusText(response.StatusCode)
	return e
}

// Passing reports whether the same call may succeed later. The reasons are an unreachable service, a truncated
// answer, an internal error, an overload or an outage.
func Passing(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return true // no answer, or half of one
	}
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}
