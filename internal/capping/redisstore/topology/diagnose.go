package topology

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"syscall"
	"time"
)

// diagnoseTime is the time limit for each connection of Diagnose.
const diagnoseTime = time.Second

// The method Diagnose looks for the reason why the server at the first address does not answer. The result of Diagnose
// is a hint for the operator, or "" if no reason was found. The result "talks" of Diagnose is true if the server speaks
// the Redis protocol with the configured settings.
func (o *Options) Diagnose(ctx context.Context) (hint string, talks bool) {
	addr := o.Addrs[0]
	plain, err := o.greets(ctx, addr, false)
	switch {
	case errors.Is(err, errNoRedis):
		return addr + " does not answer like Redis: is the port right?", false
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens at " + addr + ": is the server up, and the port right?", false
	case err != nil:
		return addr + " cannot be reached: a wrong address, or a firewall", false
	case plain && o.TLS != nil:
		return addr + " speaks plain Redis and not TLS: leave tls out, or use the server's TLS port", false
	case plain:
		return "", true
	}
	secure, _ := o.greets(ctx, addr, true)
	switch {
	case secure && o.TLS == nil:
		return addr + " speaks TLS: set tls.enabled: true", false
	case secure:
		return o.secureHint(ctx, addr), false
	}
	return addr + " accepts connections but does not answer: the server hangs, or is not Redis", false
}

// secureHint tries a TLS handshake with the server. If the server completes the handshake and requires a client
// certificate, secureHint returns a hint for the operator.
func (o *Options) secureHint(ctx context.Context, addr string) string {
	ctx, cancel := context.WithTimeout(ctx, diagnoseTime)
	defer cancel()
	conn, err := o.dialer()(ctx, "tcp", addr)
	if err != nil {
		return ""
	}
	defer func() { _ = conn.Close() }()
	return o.clientHint(ctx, conn)
}

// The method "dialer" returns the function for new connections: the configured function Dial, or a default.
func (o *Options) dialer() func(ctx context.Context, network, addr string) (net.Conn, error) {
	if o.Dial != nil {
		return o.Dial
	}
	return (&net.Dialer{Timeout: o.dialTimeout(), KeepAlive: 5 * time.Minute}).DialContext
}

// The method "greets" connects to a server and reports whether the server replies in the Redis protocol. If the
// argument "secure" is true, greets instead reports whether the server replies like a TLS server. If no connection to
// the server is possible, "greets" returns an error.
func (o *Options) greets(ctx context.Context, addr string, secure bool) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, diagnoseTime)
	defer cancel()
	conn, err := o.dialer()(ctx, "tcp", addr)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close() }()
	if secure {
		// The certificate needs no check, because no data is sent.
		err := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx)
		var alert tls.AlertError
		return err == nil || errors.As(err, &alert), nil
	}
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	answer := make([]byte, 1)
	if _, err := conn.Write([]byte("PING\r\n")); err == nil {
		_, _ = conn.Read(answer)
	}
	switch answer[0] {
	case '+', '-':
		return true, nil
	case 0, alertRecord:
		return false, nil
	}
	return false, errNoRedis
}

var errNoRedis = errors.New("server is not Redis")

// alertRecord is the first byte of a TLS alert record.
const alertRecord = 0x15
