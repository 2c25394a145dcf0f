package gate

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// These constants are the time-outs of connections and the limits on headers. If a call has a body, a pace (which
// enforces a minimum transfer rate) extends the read time-out.
const (
	headerTimeout  = 5 * time.Second
	sendTimeout    = 60 * time.Second
	idleTimeout    = 120 * time.Second
	maxHeaderBytes = 16 << 10
	// The server reads a header of up to readHeaderBytes bytes, and responds with an error if it exceeds
	// maxHeaderBytes. For a header above readHeaderBytes, net/http closes the whole HTTP/2 connection, including all
	// other calls.
	readHeaderBytes = 64 << 10
)

// loopbackKey is the context key for requests that arrived at a listener on a loopback address.
type loopbackKey struct{}

// HTTPServer returns an HTTP server for the handler h with time-outs, and with limits on headers and connections. The
// argument tlsConfig comes from the function TLSConfig; nil means plain HTTP.
func HTTPServer(h http.Handler, tlsConfig *tls.Config, bounds Bounds, connections *connections,
	log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		TLSConfig:         tlsConfig,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       headerTimeout + GraceTime,
		// The time-out starts when the header of the request arrives.
		WriteTimeout:   bounds.SlowestBody() + bounds.Timeout(bounds.BitmapUsers) + sendTimeout,
		IdleTimeout:    idleTimeout,
		MaxHeaderBytes: readHeaderBytes,
		BaseContext:    baseContext,
		ConnContext:    withConnection,
		ConnState:      connections.Watch,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

func baseContext(l net.Listener) context.Context {
	return context.WithValue(context.Background(), loopbackKey{}, IsLoopback(l.Addr().String()))
}

// Serve accepts connections of the listener until the server srv is shut down, and then returns http.ErrServerClosed.
// If the server srv has a TLS configuration, Serve uses TLS.
func Serve(srv *http.Server, l net.Listener) error {
	if srv.TLSConfig != nil {
		return srv.ServeTLS(l, "", "")
	}
	return srv.Serve(l)
}
