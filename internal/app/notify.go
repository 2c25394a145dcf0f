package app

import (
	"fmt"
	"net"
	"strings"
)

// Socket is the name of the environment variable in which a service manager such as systemd passes its socket.
const Socket = "NOTIFY_SOCKET"

// These constants are the messages by which the service reports its state to the service manager, such as systemd.
const (
	ready     = "READY=1"
	reloading = "RELOADING=1"
	stopping  = "STOPPING=1"
)

// notify sends the states to the socket of the service manager, in one datagram with a line for each state (see
// sd_notify(3)). The argument "socket" is a path, or an abstract name that begins with "@". If the argument "socket" is
// "", notify() sends nothing.
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
