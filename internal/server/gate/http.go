package gate

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Connections have these time-outs. A call with a body extends its time-out through a pace.
const (
	headerTimeout  = 5 * time.Second
	sendTimeout    = 60 * time.Second
	idleTimeout    = 120 * time.Second
	maxHeaderBytes = 16 << 10
	// A header of up to this size is read and answered. For a larger one, net/http closes the whole HTTP/2 connection
	// with all other calls.
	readHeaderBytes = 64 << 10
)

// loopbackKey marks, in the context of a request, that the listener has a loopback address.
type loopbackKey struct{}

// HTTPServer returns an HTTP server for h with explicit time-outs, limits on headers and limits on connections. The
// argument tlsConfig comes from TLSConfig; nil means plain HTTP.
func HTTPServer(h http.Handler, tlsConfig *tls.Config, bounds Bounds, connections *connections,
	log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		TLSConfig:         tlsConfig,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       headerTimeout + GraceTime,
		// the time-out starts at the request's header
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

// Serve serves the listener until srv is shut down, and then returns http.ErrServerClosed. Serve uses TLS when srv
// has a TLS configuration.
func Serve(srv *http.Server, l net.Listener) error {
	if srv.TLSConfig != nil {
		return srv.ServeTLS(l, "", "")
	}
	return srv.Serve(l)
}
