package app

import (
	"fmt"
	"net"
	"strings"
)

// Socket is the environment variable that names the service manager's socket.
const Socket = "NOTIFY_SOCKET"

// A service sends these states to the service manager.
const (
	ready     = "READY=1"
	reloading = "RELOADING=1"
	stopping  = "STOPPING=1"
)

// notify sends states to the service manager's socket, as sd_notify(3) describes: one datagram of lines. The socket
// is a path, or an abstract name that begins with @. For "", notify does nothing.
func notify(socket string, states ...string) error {
	if socket == "" {
		return nil
	}
	to, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	defer to.Close()
	if _, err := to.Write([]byte(strings.Join(states, "\n"))); err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	return nil
}
