package gate

import "golang.org/x/sys/unix"

// peerClosed reports whether the other side has closed the connection. Unread bytes do not hide a closed connection.
func peerClosed(fd int) bool {
	state := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(state, 0)
	return err == nil && n > 0 && state[0].Revents != 0
}
