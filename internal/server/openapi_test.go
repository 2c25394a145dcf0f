package server_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/stretchr/testify/require"

	"capper/internal/server"
)

// contract is the API's description with checked examples.
var contract = sync.OnceValues(func() (routers.Router, error) {
	openapi3filter.RegisterBodyDecoder("application/yaml", openapi3filter.FileBodyDecoder)
	openapi3.DefineStringFormatValidator("byte", openapi3.NewRegexpFormatValidator(`^[A-Za-z0-9+/]*={0,2}$`))
	doc, err := openapi3.NewLoader().LoadFromData(server.OpenAPI())
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(context.Background(), openapi3.EnableExamplesValidation(),
		openapi3.EnableSchemaFormatValidation()); err != nil {
		return nil, err
	}
	return legacy.NewRouter(doc)
})

// requireContract checks every answer, and every accepted request, against the API's description.
func requireContract(t testing.TB, r *http.Request, body []byte, answer reply) {
	t.Helper()
	router, err := contract()
	require.NoError(t, err)
	relative := r.Clone(r.Context())
	relative.URL.Scheme, relative.URL.Host = "", ""
	relative.URL.Path = namesWithSlashes.ReplaceAllString(relative.URL.Path, "/v1/$1/name/$2")
	if strings.HasPrefix(relative.URL.Path, "/v1/messages/") {
		relative.URL.Path = "/v1/messages/id"
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/release") {
			relative.URL.Path += "/release"
		}
	}
	if strings.HasPrefix(relative.URL.Path, "/v1/users/") && r.URL.RawPath != "" { // an id with escapes
		relative.URL.Path = "/v1/users/id"
	}
	relative.URL.RawPath = ""
	if relative.Header.Get("X-Request-Id") == "" { // empty counts as absent
		relative.Header.Del("X-Request-Id")
	}
	route, params, err := router.FindRoute(relative)
	if err != nil || answer.status == http.StatusNotFound { // a path of the other listener is not found on this one
		require.Contains(t, []int{http.StatusNotFound, http.StatusMethodNotAllowed}, answer.status,
			"%s %s is answered and not described", r.Method, r.URL.Path)
		return
	}
	input := &openapi3filter.RequestValidationInput{
		Request: relative, PathParams: params, Route: route,
		Options: &openapi3filter.Options{
			AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true,
			ExcludeRequestBody: r.Header.Get("Content-Encoding") != "",
		},
	}
	if answer.status/100 == 2 {
		relative.Body = io.NopCloser(bytes.NewReader(body))
		require.NoError(t, openapi3filter.ValidateRequest(r.Context(), input), "%s %s", r.Method, body)
	}
	output := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: answer.status, Header: answer.header, Options: input.Options,
	}
	output.SetBodyBytes(answer.body)
	require.NoError(t, openapi3filter.ValidateResponse(r.Context(), output), "%d %s", answer.status, answer.body)
	described := route.Operation.Responses.Status(answer.status).Value.Headers
	for name := range answer.header {
		if !slices.Contains(transportHeaders, http.CanonicalHeaderKey(name)) {
			require.Contains(t, canonical(described), http.CanonicalHeaderKey(name),
				"%s %s: %d has a header that is not described", r.Method, r.URL.Path, answer.status)
		}
	}
}

// namesWithSlashes matches paths whose name the description's tools would split into several elements.
var namesWithSlashes = regexp.MustCompile(`^/v1/(segments|sets)/.+/(bitmap|members)$`)

// transportHeaders belong to HTTP and not to this API.
var transportHeaders = []string{"Content-Type", "Content-Length", "Content-Encoding", "Transfer-Encoding", "Connection",
	"Date", "Vary"}

func canonical(headers openapi3.Headers) (names []string) {
	for name := range headers {
		names = append(names, http.CanonicalHeaderKey(name))
	}
	return names
}

func TestDescriptionIsServed(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := s.get("/openapi.yaml")
	require.Equal(t, http.StatusOK, r.status)
	require.Equal(t, server.OpenAPI(), r.body)
}
