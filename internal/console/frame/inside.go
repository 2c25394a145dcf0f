package frame

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"capper/client"
	"capper/internal/server/gate"
)

// inside is an HTTP transport that calls the API's handler within the process.
type inside struct{ handler http.Handler }

// RoundTrip returns when the handler has answered or the context of the call has ended.
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

// visitor is the context key for the visitor's request that causes a call to the API.
type visitor struct{}

// visiting returns the context for API calls that serve a visitor's request.
func visiting(r *http.Request, key string) context.Context {
	return gate.Inside(context.WithValue(r.Context(), visitor{}, r), key)
}

// newClient returns a client of the API within the process. The context of each call names the visitor.
func newClient(handler http.Handler) (*client.Client, error) {
	return client.New(client.Config{URL: "http://localhost", HTTP: &http.Client{Transport: inside{handler}},
		Attempts: 1})
}

// recorded stores an answer of the handler.
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
