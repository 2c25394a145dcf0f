package server

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// The time-outs of connections. Calls with bodies move theirs on, see pace.
const (
	headerTimeout  = 5 * time.Second
	sendTimeout    = 60 * time.Second
	idleTimeout    = 120 * time.Second
	maxHeaderBytes = 16 << 10
)

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
		MaxHeaderBytes:    maxHeaderBytes,
		ConnState:         guests.watch,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
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
