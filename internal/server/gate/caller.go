package gate

import (
	"context"
	"crypto/tls"
	"net"
	"syscall"
)

type connectionKey struct{}

func withConnection(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, c)
}

// HasLeft reports whether the caller of a request has closed its connection. The context is the one of the request. The
// server cancels this context a moment after the caller has left. After a pause of the process, HasLeft reports at once
// a caller who has left during the pause, because HasLeft asks the operating system.
func HasLeft(ctx context.Context) bool {
	if ctx.Err() != nil {
		return true
	}
	connection, ok := ctx.Value(connectionKey{}).(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := connection.SyscallConn()
	if err != nil {
		return true
	}
	left := false
	err = raw.Control(func(fd uintptr) {
		n, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		left = n == 0 && err == nil || err != nil && err != syscall.EAGAIN && err != syscall.EINTR
	})
	return left || err != nil
}
