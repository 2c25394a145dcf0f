package server

import (
	_ "embed" // the API's description
	"net/http"
	"strconv"
)

//go:embed openapi.yaml
var openAPI []byte

// OpenAPI is the API's description, an OpenAPI 3 document in YAML. The caller
// must not change it.
func OpenAPI() []byte { return openAPI }

// description serves GET /openapi.yaml.
func (s *Server) description(c *call) error {
	h := c.w.Header()
	h.Set("Content-Type", "application/yaml")
	h.Set("Content-Length", strconv.Itoa(len(openAPI)))
	c.w.WriteHeader(http.StatusOK)
	_, _ = c.w.Write(openAPI) // a caller that has gone needs no answer
	return nil
}
