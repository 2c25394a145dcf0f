package gate

import (
	"context"
	"crypto/tls"
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
	// Up to so much is read and answered. Beyond it net/http ends an HTTP/2
	// connection, and all other calls on it, for one call with too large a header.
	readHeaderBytes = 64 << 10
)

// loopbackKey marks, in a request's context, that its listener is on a loopback
// address.
type loopbackKey struct{}

// HTTPServer serves h with explicit time-outs and bounds of headers, and the
// connections that connections lets in. tlsConfig is from TLSConfig; nil: plain HTTP.
func HTTPServer(h http.Handler, tlsConfig *tls.Config, bounds Bounds, connections *connections,
	log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		TLSConfig:         tlsConfig,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       headerTimeout + GraceTime,
		// it runs from the header on
		WriteTimeout:   bounds.SlowestBody() + bounds.Timeout(bounds.BitmapUsers) + sendTimeout,
		IdleTimeout:    idleTimeout,
		MaxHeaderBytes: readHeaderBytes,
		BaseContext:    baseContext,
		ConnState:      connections.Watch,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

func baseContext(l net.Listener) context.Context {
	return context.WithValue(context.Background(), loopbackKey{}, IsLoopback(l.Addr().String()))
}

// Serve serves the listener, with TLS when srv has it, until srv is shut down:
// then it returns http.ErrServerClosed.
func Serve(srv *http.Server, l net.Listener) error {
	if srv.TLSConfig != nil {
		return srv.ServeTLS(l, "", "")
	}
	return srv.Serve(l)
}
