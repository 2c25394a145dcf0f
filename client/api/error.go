package api

import "net/http"

// The type Code is the stable name of an API error, by which programs recognise it.
type Code string

// The constants below are all codes of API errors. Each error code belongs to one HTTP status.
const (
	CodeInvalidRequest   = "invalid_request"
	CodeUnauthorized     = "unauthorized"
	CodeForbidden        = "forbidden"
	CodeNotFound         = "not_found"
	CodeGone             = "gone"
	CodeConflict         = "conflict"
	CodeMethodNotAllowed = "method_not_allowed"
	CodeTimeout          = "request_timeout"
	CodeTooLarge         = "too_large"
	CodeUnsupportedMedia = "unsupported_media_type"
	CodeMisdirected      = "misdirected"
	CodeHeaderTooLarge   = "header_too_large"
	CodeRateLimited      = "rate_limited"
	CodeTooManyRecords   = "too_many_records"
	CodeOverloaded       = "overloaded"
	CodeUnavailable      = "unavailable"
	CodeInternal         = "internal"
)

// The function Codes returns all codes of API errors.
func Codes() []Code {
	return []Code{
		CodeInvalidRequest, CodeUnauthorized, CodeForbidden, CodeNotFound, CodeConflict, CodeGone, CodeMethodNotAllowed,
		CodeTimeout, CodeTooLarge,
		CodeUnsupportedMedia, CodeMisdirected, CodeHeaderTooLarge, CodeRateLimited, CodeTooManyRecords, CodeOverloaded,
		CodeUnavailable, CodeInternal,
	}
}

// The method Status returns the HTTP status of an error response with the Code. The method Status holds the program's
// only table that maps error codes to HTTP statuses. An unknown code has the status 500.
func (c Code) Status() int {
	switch c {
	case CodeInvalidRequest:
		return http.StatusBadRequest
	case CodeUnauthorized:
		return http.StatusUnauthorized
	case CodeForbidden:
		return http.StatusForbidden
	case CodeNotFound:
		return http.StatusNotFound
	case CodeConflict:
		return http.StatusConflict
	case CodeGone:
		return http.StatusGone
	case CodeMethodNotAllowed:
		return http.StatusMethodNotAllowed
	case CodeTimeout:
		return http.StatusRequestTimeout
	case CodeTooLarge:
		return http.StatusRequestEntityTooLarge
	case CodeUnsupportedMedia:
		return http.StatusUnsupportedMediaType
	case CodeMisdirected:
		return http.StatusMisdirectedRequest
	case CodeHeaderTooLarge:
		return http.StatusRequestHeaderFieldsTooLarge
	case CodeRateLimited, CodeTooManyRecords:
		return http.StatusTooManyRequests
	case CodeOverloaded, CodeUnavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// Error is the body of the response to a rejected API call.
type Error struct {
	Error Refusal `json:"error"`
	// Unavailable lists the users whose changes may not be stored, for a call that changes a set. Repeat the call.
	Unavailable []uint32 `json:"unavailable,omitempty"`
	// UnavailableIDs replaces Unavailable if ids are not dense, or if the call contained dense ids as strings.
	UnavailableIDs []string `json:"unavailable_ids,omitempty"`
	// UnavailableImages lists the users whose changes may not be stored, if the call named them by images.
	UnavailableImages []string `json:"unavailable_images,omitempty"`
}

// Refusal describes why the service rejected a call.
type Refusal struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`         // text for people with the field, the value and the rule
	Field   string `json:"field,omitempty"` // the request's field at fault, as in user_ids[3]; "": none
	// position of the error in the text of Field, in characters from 1; 0: unknown
	Column int `json:"column,omitempty"`
	// RequestID is the X-Request-Id of the response, which identifies the request in the service's log; "" from older
	// services.
	RequestID string `json:"request_id,omitempty"`
}
