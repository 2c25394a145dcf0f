package server

import (
	_ "embed" // the API's description
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"capper/client/api"
	"capper/internal/server/wire"
)

// writeFailure writes the failure f as the HTTP response to the request with the given id.
func writeFailure(w http.ResponseWriter, requestID string, f *wire.Failure) {
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", wholeSeconds(f.RetryAfter))
	}
	if f.Code == api.CodeUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="capper"`)
	}
	refusal := f.Refusal
	refusal.RequestID = requestID
	body, err := json.Marshal(api.Error{Error: refusal, Unavailable: f.Unavailable,
		UnavailableIDs: f.UnavailableIDs, UnavailableImages: f.UnavailableImages})
	if err != nil { // a struct of strings always encodes
		body = nil
	}
	writeBody(w, f.Code.Status(), append(body, '\n'))
}

// wholeSeconds returns a duration in seconds, rounded up.
func wholeSeconds(d time.Duration) string {
	return strconv.FormatInt(int64(math.Ceil(d.Seconds())), 10)
}

func writeBody(w http.ResponseWriter, status int, body []byte) {
	writeHeader(w, status, len(body))
	_, _ = w.Write(body) // a write error means that the caller has disconnected
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

//go:embed openapi.yaml
var openAPI []byte

// OpenAPI returns the description of the API as an OpenAPI 3 document in YAML. The caller of OpenAPI must not change
// the returned bytes.
func OpenAPI() []byte { return openAPI }

// The method description serves GET /openapi.yaml.
func (s *Server) description(c *call) error {
	h := c.w.Header()
	h.Set("Content-Type", "application/yaml")
	h.Set("Content-Length", strconv.Itoa(len(openAPI)))
	c.w.WriteHeader(http.StatusOK)
	_, _ = c.w.Write(openAPI) // a write error means that the caller has disconnected
	return nil
}
