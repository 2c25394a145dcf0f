// Package api is the API on the wire: what its requests and answers hold, its
// errors, and how it writes times and bitmaps. Service and client use these
// types; the description at /openapi.yaml names the same fields.
package api
