package s3test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"testing"
)

// The function Proxy starts an HTTP proxy in front of the S3 test server and returns the proxy's URL. The function in
// the argument "wrap" wraps the proxy's handler, so that tests can simulate a slow or broken network. The proxy keeps
// the host name of each S3 request, so that the signature of the request stays valid.
func Proxy(t testing.TB, wrap func(server http.Handler) http.Handler) string {
	t.Helper()
	server, err := url.Parse(os.Getenv("AWS_ENDPOINT_URL_S3"))
	if err != nil {
		t.Fatal(err)
	}
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(server)
		r.Out.Host = r.In.Host
	}}
	proxy := httptest.NewServer(wrap(pass))
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// CutBody forwards the response of the handler "next", but closes the connection after the given number of body
// bytes. The headers of the forwarded response still announce the whole body.
func CutBody(w http.ResponseWriter, r *http.Request, next http.Handler, after int) {
	next.ServeHTTP(&cutWriter{w, after}, r)
}

type cutWriter struct {
	http.ResponseWriter
	left int
}

func (c *cutWriter) Write(p []byte) (int, error) {
	if len(p) < c.left {
		c.left -= len(p)
		return c.ResponseWriter.Write(p)
	}
	_, _ = c.ResponseWriter.Write(p[:c.left]) // ignores errors, because the panic ends the response
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}
