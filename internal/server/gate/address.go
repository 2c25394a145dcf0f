package gate

import (
	"fmt"
	"net"
)

// Open opens a TCP listener on host:port. An address that others than this
// machine can reach is refused unless calls need keys.
func Open(addr string, hasKeys bool) (net.Listener, error) {
	if err := checkAddr(addr, hasKeys); err != nil {
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
		return fmt.Errorf("listen on %q: must be host:port", addr)
	}
	if !hasKeys && !IsLoopback(addr) {
		return fmt.Errorf("listen on %q: must be a loopback address such as 127.0.0.1:8080 if no API keys are "+
			"configured",
			addr)
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
