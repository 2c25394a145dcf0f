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
	if s, ok := c.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			return context.WithValue(ctx, connectionKey{}, raw)
		}
	}
	return ctx
}

// HasLeft reports whether the caller of a request has closed its connection. The argument ctx is the context of the
// request, which the server cancels a moment after the caller has left. After a pause of the process, HasLeft
// immediately reports a caller who has left during the pause, because HasLeft asks the operating system. A caller of
// HTTP/2 may leave without closing its connection: after a pause, HasLeft may report such a caller too late.
func HasLeft(ctx context.Context) bool {
	if ctx.Err() != nil {
		return true
	}
	raw, ok := ctx.Value(connectionKey{}).(syscall.RawConn)
	if !ok {
		return false
	}
	left := false
	err := raw.Control(func(fd uintptr) { left = peerClosed(int(fd)) })
	return left || err != nil
}
