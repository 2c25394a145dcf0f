package frame

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"capper/client"
	"capper/internal/server/gate"
)

// The type "inside" is an HTTP transport that calls the handler of the API within the process.
type inside struct{ handler http.Handler }

// RoundTrip returns when the handler of the API has responded or when the context of the request ends.
func (t inside) RoundTrip(r *http.Request) (*http.Response, error) {
	to := r.Clone(r.Context())
	to.RequestURI = r.URL.RequestURI()
	if from, ok := r.Context().Value(visitor{}).(*http.Request); ok {
		to.RemoteAddr, to.Host, to.Proto, to.ProtoMajor, to.ProtoMinor = from.RemoteAddr, from.Host, from.Proto,
			from.ProtoMajor, from.ProtoMinor
		to.Header["X-Request-Id"] = from.Header["X-Request-Id"]
	}
	if to.Body == nil {
		to.Body = http.NoBody
	}
	answer := &recorded{header: http.Header{}}
	t.handler.ServeHTTP(answer, to)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return answer.response(r), nil
}

// The type visitor is the context key for the HTTP request of the visitor for whom a page calls the API.
type visitor struct{}

// The function "visiting" returns the context for API calls that a page makes on behalf of a visitor.
func visiting(r *http.Request, key string) context.Context {
	return gate.Inside(context.WithValue(r.Context(), visitor{}, r), key)
}

// newClient returns a client that calls the API within the process. The context of each call of the in-process client
// must contain the visitor's request.
func newClient(handler http.Handler) (*client.Client, error) {
	return client.New(client.Config{URL: "http://localhost", HTTP: &http.Client{Transport: inside{handler}},
		Attempts: 1})
}

// The type "recorded" is a response writer that stores the response in memory.
type recorded struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *recorded) Header() http.Header { return a.header }

func (a *recorded) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *recorded) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

func (a *recorded) response(r *http.Request) *http.Response {
	a.WriteHeader(http.StatusOK)
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header, Body: io.NopCloser(&a.body), ContentLength: int64(a.body.Len()), Request: r,
	}
}
