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

// The constants below are the codes in error responses of the service (Error.Code).
const (
	CodeInvalidRequest   = api.CodeInvalidRequest
	CodeUnauthorized     = api.CodeUnauthorized
	CodeForbidden        = api.CodeForbidden
	CodeNotFound         = api.CodeNotFound
	CodeConflict         = api.CodeConflict // the service lacks a feature that the call needs
	CodeGone             = api.CodeGone     // the service has dropped the generation of an audience
	CodeMethodNotAllowed = api.CodeMethodNotAllowed
	CodeTimeout          = api.CodeTimeout
	CodeTooLarge         = api.CodeTooLarge
	CodeUnsupportedMedia = api.CodeUnsupportedMedia
	CodeMisdirected      = api.CodeMisdirected
	CodeHeaderTooLarge   = api.CodeHeaderTooLarge
	CodeRateLimited      = api.CodeRateLimited
	CodeTooManyRecords   = api.CodeTooManyRecords // too many requests, message logs or set changes in the store
	CodeOverloaded       = api.CodeOverloaded
	CodeUnavailable      = api.CodeUnavailable
	CodeInternal         = api.CodeInternal
)

// Error is an error response of the service.
type Error struct {
	Status     int           // HTTP status
	Code       string        // one of the codes; "" when the response did not come from capper
	Message    string        // text for people
	Field      string        // name of the wrong request field; "" for none
	Column     int           // position of the error in the text of Field, in characters from 1; 0: unknown
	RetryAfter time.Duration // 0: the response has no Retry-After
	// Unavailable lists, for a change of a set, the users whose change may not be stored; nil: the response names none
	Unavailable []uint32
	// UnavailableIDs replaces Unavailable where ids are not dense, and for a change with dense ids as strings
	UnavailableIDs []string
	// UnavailableImages replaces Unavailable for a change with images of ids
	UnavailableImages []string
	RequestID         string // identifies the request in the service's log; "": the response has none
}

func (e *Error) Error() string {
	if e.Code == "" {
		return e.named(fmt.Sprintf("status %d: %s", e.Status, e.Message))
	}
	return e.named(fmt.Sprintf("%s: %s", e.Code, e.Message))
}

// The method "named" adds the request id to an error text, so that a caller can ask the service's operators about the
// failed request.
func (e *Error) named(text string) string {
	if e.RequestID == "" {
		return text
	}
	return text + " (request " + e.RequestID + ")"
}

// HasCode reports whether err is, or wraps, an *Error with the given code.
func HasCode(err error, code string) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// errorOf decodes the error in an HTTP response of the service.
func errorOf(response *http.Response, body []byte) *Error {
	e := &Error{Status: response.StatusCode, RequestID: response.Header.Get("X-Request-Id")}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds >= 0 {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	var answer api.Error
	if json.Unmarshal(body, &answer) == nil && answer.Error.Code != "" {
		e.Code, e.Message = string(answer.Error.Code), answer.Error.Message
		e.Field, e.Column = answer.Error.Field, answer.Error.Column
		e.Unavailable, e.UnavailableIDs = answer.Unavailable, answer.UnavailableIDs
		e.UnavailableImages = answer.UnavailableImages
		return e
	}
	e.Message = http.StatusText(response.StatusCode)
	return e
}

// The function Passing reports whether an error may be temporary, so that the same call may succeed later. Temporary
// errors are: an unreachable service, a truncated response, a time-out, a rate limit, an internal error, an overload
// and an outage.
func Passing(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return true // no response, or an incomplete one
	}
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}
