package redisstore

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// HintedError is why a store cannot be opened, with what an operator can do
// about it.
type HintedError struct {
	Err  error
	Hint string
}

// Error is the error without the hint.
func (e *HintedError) Error() string { return e.Err.Error() }

// Unwrap is the error without the hint.
func (e *HintedError) Unwrap() error { return e.Err }

// IsAuth reports whether a server refused the user or the password.
func IsAuth(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && remedyOfReply(reply.Error()).kind == kindAuth
}

// clusterDown is the hint for a cluster of which a part has no master.
const clusterDown = "the cluster does not serve: redis-cli --cluster check ADDRESS tells which slots have no master"

// explain adds to why the store cannot start what can be found out about it,
// in a time of its own: the start's may be over.
func (t *topology) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	var reply redis.Error
	if !errors.As(err, &reply) {
		return hint(err, t.diagnose(ctx))
	}
	switch fix := remedyOfReply(reply.Error()); {
	case isDenial(reply.Error()):
		return cmp.Or(t.askRights(ctx), err)
	case fix.kind == kindDown:
		return hint(err, clusterDown)
	}
	return err
}

func hint(err error, text string) error {
	if text == "" {
		return err
	}
	return &HintedError{err, text}
}

// askRights finds the first server where rights are lacking, and all of them.
// Whether it is a cluster's is not known: all its commands are tried.
func (t *topology) askRights(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, diagnoseTime)
	defer cancel()
	known := t.cluster
	defer func() { t.cluster = known }()
	t.cluster = t.config.SentinelMaster == ""
	for _, n := range t.all() {
		if lacking, err := t.lackingRights(ctx, n.client, "node "+n.addr, t.trialKey(0), false); err == nil && lacking != nil {
			return lacking
		}
	}
	return nil
}

// diagnoseTime bounds each question of diagnose.
const diagnoseTime = time.Second

// diagnose finds out why the first address of the configuration gives no
// answer, "" when nothing is to be seen.
func (t *topology) diagnose(ctx context.Context) string {
	addr := t.config.Addrs[0]
	plain, err := t.greets(ctx, addr, false)
	switch {
	case errors.Is(err, errNoRedis):
		return addr + " answers, and not as Redis does: is the port right?"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens at " + addr + ": is the server up, and the port right?"
	case err != nil:
		return addr + " cannot be reached: a wrong address, or a firewall"
	case plain && t.config.TLS != nil:
		return addr + " speaks plain Redis and not TLS: leave tls out, or use the server's TLS port"
	case plain:
		return t.clusterHint(ctx)
	}
	secure, _ := t.greets(ctx, addr, true)
	switch {
	case secure && t.config.TLS == nil:
		return addr + " speaks TLS: set tls.enabled: true"
	case secure:
		return "" // the error tells what is wrong with a certificate
	}
	return addr + " takes connections and says nothing: no Redis, or one that hangs"
}

// clusterHint is clusterDown when a node says so.
func (t *topology) clusterHint(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, diagnoseTime)
	defer cancel()
	for _, n := range t.all() {
		if v, err := n.view(ctx); t.cluster && err == nil && !v.ok {
			return clusterDown
		}
	}
	return ""
}

// greets reports whether what listens at the address answers as Redis, or as
// any TLS server. An error is that nobody can be connected to.
func (t *topology) greets(ctx context.Context, addr string, secure bool) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, diagnoseTime)
	defer cancel()
	dial := t.config.dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	conn, err := dial(ctx, "tcp", addr)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close() }()
	if secure {
		// Whose certificate it is does not matter: nothing is sent.
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

var errNoRedis = errors.New("no Redis")

// alertRecord is the first byte of a TLS alert.
const alertRecord = 0x15
