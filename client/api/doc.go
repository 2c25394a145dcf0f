// Package api defines the requests, responses and errors of the HTTP API, and the encoding of times and bitmaps. The
// service and the Go client share the types of package api. The OpenAPI description at /openapi.yaml uses the same
// field names.
package api
