package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The time-outs of connections. Calls with bodies move theirs on, see pace.
const (
	headerTimeout  = 5 * time.Second
	sendTimeout    = 60 * time.Second
	idleTimeout    = 120 * time.Second
	maxHeaderBytes = 16 << 10
	// Up to so much is read and answered. Beyond it net/http ends an HTTP/2
	// connection, and all other calls on it, for one call with too large a header.
	readHeaderBytes = 64 << 10
)

// loopbackKey marks, in a request's context, that its listener is on a loopback
// address.
type loopbackKey struct{}

// HTTPServer serves h, Public or Admin, with explicit time-outs and bounds of
// headers and connections. tlsConfig is from TLSConfig; nil: plain HTTP.
func (s *Server) HTTPServer(h http.Handler, tlsConfig *tls.Config) *http.Server {
	guests := newCrowd(s.bounds.Connections)
	s.crowds.Store(guests, struct{}{})
	return &http.Server{
		Handler:           h,
		TLSConfig:         tlsConfig,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       headerTimeout + graceTime,
		WriteTimeout:      s.slowestBody() + s.bounds.timeout(s.bounds.BitmapUsers) + sendTimeout, // it runs from the header on
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    readHeaderBytes,
		BaseContext:       baseContext,
		ConnState:         guests.watch,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

func baseContext(l net.Listener) context.Context {
	return context.WithValue(context.Background(), loopbackKey{}, IsLoopback(l.Addr().String()))
}

// acceptable refuses what has too large a header, and calls of a loopback
// listener by another name: a page whose name its owner lets point here would
// make them, from a browser on this machine.
func (s *Server) acceptable(r *http.Request) error {
	size := len(r.RequestURI) + len(r.Host)
	for name, values := range r.Header {
		for _, value := range values {
			size += len(name) + len(value) + len(": \r\n")
		}
	}
	if size > maxHeaderBytes {
		return fail(CodeHeaderTooLarge, "the header has %d bytes, at most %d are allowed", size, maxHeaderBytes)
	}
	if loopback, _ := r.Context().Value(loopbackKey{}).(bool); loopback && !localHost(r.Host) && !slices.Contains(s.hosts, hostOf(r.Host)) {
		return fail(CodeMisdirected, "this service is called by localhost, a loopback address, or a name of server.host_names, not by %q", clip([]byte(r.Host)))
	}
	return nil
}

// hostOf is the name in a Host header, without port, in lower case.
func hostOf(header string) string {
	host := header
	if name, _, err := net.SplitHostPort(header); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// localHost reports whether a Host header names this machine by a name that
// cannot be pointed elsewhere. Only HTTP/1.0 has none.
func localHost(header string) bool {
	host := hostOf(header)
	ip := net.ParseIP(host)
	return header == "" || host == "localhost" || ip != nil && ip.IsLoopback()
}

// slowestBody is how long a body of the largest size may take.
func (s *Server) slowestBody() time.Duration {
	return graceTime + time.Duration(s.bounds.BodyBytes/s.bounds.MinRate+1)*time.Second
}

// Serve serves the listener, with TLS when srv has it, until srv is shut down:
// then it returns http.ErrServerClosed.
func Serve(srv *http.Server, l net.Listener) error {
	if srv.TLSConfig != nil {
		return srv.ServeTLS(l, "", "")
	}
	return srv.Serve(l)
}

// Listen opens a TCP listener on host:port. An address that others than this
// machine can reach is refused unless the server has API keys.
func (s *Server) Listen(addr string) (net.Listener, error) {
	if err := checkAddr(addr, len(s.access.Load().Keys) > 0); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return l, nil
}

func checkAddr(addr string, hasKeys bool) error {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return fmt.Errorf("listen on %q: it is not host:port", addr)
	}
	if !hasKeys && !IsLoopback(addr) {
		return fmt.Errorf("listen on %q: without API keys only loopback addresses are allowed, such as 127.0.0.1:8080", addr)
	}
	return nil
}

// IsLoopback reports whether a listener on host:port is reachable from this
// machine only. Host names other than localhost are not: they may change.
func IsLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
