// Package systemd tells the service manager how the service does, as sd_notify(3) describes
// it: one datagram of lines to the socket that the manager names in the environment.
package app

import (
	"fmt"
	"net"
	"strings"
)

// Socket is the environment variable that names the manager's socket.
const Socket = "NOTIFY_SOCKET"

// The states of a service.
const (
	ready     = "READY=1"
	reloading = "RELOADING=1"
	stopping  = "STOPPING=1"
)

// notify sends states to a socket: a path, or with @ in front a name that is no file. To
// "", where no manager asks, it sends nothing.
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
