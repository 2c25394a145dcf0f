// Package api defines the requests, answers and errors of the HTTP API, and their encoding of times and bitmaps. The
// service and the Go client share these types. The OpenAPI description at /openapi.yaml uses the same field names.
package api
