package gate

import (
	"net"
	"net/http"
	"slices"
	"strings"

	"capper/client/api"
	"capper/internal/server/wire"
)

// Acceptable refuses what has too large a header, and calls of a loopback
// listener by another name: a page whose name its owner lets point here would
// make them, from a browser on this machine. names are those by which it may be
// called beside localhost and loopback addresses, in lower case.
func Acceptable(r *http.Request, names []string) error {
	size := len(r.RequestURI) + len(r.Host)
	for name, values := range r.Header {
		for _, value := range values {
			size += len(name) + len(value) + len(": \r\n")
		}
	}
	if size > maxHeaderBytes {
		return wire.NewFailure(api.CodeHeaderTooLarge, "the header has %d bytes and must have at most %d", size,
			maxHeaderBytes)
	}
	if loopback, _ := r.Context().Value(loopbackKey{}).(bool); loopback && !LocalHost(r.Host) &&
		!slices.Contains(names, hostOf(r.Host)) {
		return wire.NewFailure(api.CodeMisdirected, "the Host header must be localhost, a loopback address, or a name "+
			"in server.host_names, not %q", wire.Clip([]byte(r.Host)))
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

// LocalHost reports whether a Host header names this machine by a name that
// cannot be pointed elsewhere. Only HTTP/1.0 has none.
func LocalHost(header string) bool {
	host := hostOf(header)
	ip := net.ParseIP(host)
	return header == "" || host == "localhost" || ip != nil && ip.IsLoopback()
}
