package gate

import (
	"fmt"
	"net"
)

// Open opens a TCP listener on host:port. If calls need no API keys, Open returns an error for an address that other
// machines can reach.
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
		return fmt.Errorf("listen on %q: the address must be host:port", addr)
	}
	if !hasKeys && !IsLoopback(addr) {
		return fmt.Errorf(
			"listen on %q: without API keys, the address must be a loopback address such as 127.0.0.1:8080",
			addr)
	}
	return nil
}

// IsLoopback reports whether only this machine can reach a listener on host:port. If the host is a name other than
// "localhost", IsLoopback returns false, because the addresses of a host name may change.
func IsLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
