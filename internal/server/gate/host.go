package gate

import (
	"net"
	"net/http"
	"slices"
	"strings"

	"capper/client/api"
	"capper/internal/server/wire"
)

// The function Acceptable returns an error for a request whose header is too large. On a loopback listener, Acceptable
// also returns an error if the request names the host of another machine. If Acceptable allowed foreign host names, a
// hostile web page could resolve its name to this machine and call the service from a visitor's browser. The argument
// "names" lists further allowed host names, in lower case. A request may always name the host as "localhost" or as a
// loopback address.
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

// hostOf returns the host name of a Host header in lower case, without the port.
func hostOf(header string) string {
	host := header
	if name, _, err := net.SplitHostPort(header); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// LocalHost reports whether a Host header contains "localhost" or a loopback address. LocalHost accepts "localhost",
// because no foreign DNS server can change the address of "localhost". For an empty Host header, LocalHost returns
// true, because only clients with HTTP/1.0 omit the header.
func LocalHost(header string) bool {
	host := hostOf(header)
	ip := net.ParseIP(host)
	return header == "" || host == "localhost" || ip != nil && ip.IsLoopback()
}
