//go:build !linux

package gate

import "syscall"

// peerClosed reports whether the other side has closed the connection, unless unread bytes hide this.
func peerClosed(fd int) bool {
	n, _, err := syscall.Recvfrom(fd, make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return n == 0 && err == nil || err != nil && err != syscall.EAGAIN && err != syscall.EINTR
}
