// Package connect makes clients of single Redis servers, and knows how far the
// servers are. A client tries once: what to do about a failure is for its user
// to decide.
package topology

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Options are how servers are reached.
type Options struct {
	// Addrs are host:port of nodes or servers, or, with SentinelMaster, of Sentinels.
	Addrs          []string
	SentinelMaster string // "": no Sentinel
	Username       string
	Password       string
	TLS            *tls.Config // nil: plain TCP
	// Authorities is asked at every new connection whose certificates are believed. Nil: those of TLS.
	Authorities func() (*x509.CertPool, error)
	// Credentials is asked for user and password at every new connection. Nil:
	// Username and Password.
	Credentials func() (username, password string, err error)

	// Shown takes the certificates that servers show. Nil: they are not kept.
	Shown *Shown

	// AttemptTimeout bounds what is sent at once, with four round trips on top.
	AttemptTimeout time.Duration
	Connections    int // to one server, at most

	// Dial replaces the dialer; nil: the usual one.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Client is a client of the server at addr, or with Sentinels of the master.
// Attempts are bounded by contexts, so that a far server gets more time. started is told
// the run of the server that each new connection is to; nil: nobody asks.
func (o *Options) Client(addr string, trips *RoundTrips, started func(run string)) *redis.Client {
	silenceLibrary()
	if o.SentinelMaster != "" {
		return redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: o.SentinelMaster, SentinelAddrs: o.Addrs,
			Username: o.Username, Password: o.Password, CredentialsProviderContext: o.credentials(),
			Dialer: trips.dialThrough(o),
			// A dial asks the Sentinels first: there has to be time for another one when the first is silent.
			DialTimeout: 4 * o.AttemptTimeout, ReadTimeout: o.LongestAttempt(), WriteTimeout: o.LongestAttempt(),
			ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1, Protocol: 2, DisableIdentity: true,
			PoolSize: o.Connections, OnConnect: askRun(started),
		})
	}
	return o.DirectClient(addr, trips, started)
}

// DirectClient is a client of the server at addr, Sentinels or not.
func (o *Options) DirectClient(addr string, trips *RoundTrips, started func(run string)) *redis.Client {
	silenceLibrary()
	return redis.NewClient(&redis.Options{
		Addr: addr, Username: o.Username, Password: o.Password, CredentialsProviderContext: o.credentials(),
		Dialer:      trips.dialThrough(o),
		DialTimeout: o.dialTimeout(), ReadTimeout: o.LongestAttempt(), WriteTimeout: o.LongestAttempt(),
		ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1, Protocol: 2, DisableIdentity: true,
		PoolSize:                 o.Connections,
		OnConnect:                askRun(started),
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// askRun asks a new connection for the run of its server: a number that it draws when it starts.
func askRun(started func(run string)) func(context.Context, *redis.Conn) error {
	if started == nil {
		return nil
	}
	return func(ctx context.Context, conn *redis.Conn) error {
		text, err := conn.Info(ctx, "server").Result()
		var refused redis.Error
		if err != nil && !errors.As(err, &refused) {
			return err
		}
		// the library asks Sentinels over connections like these
		if facts := ParseInfo(text); facts["redis_mode"] != "sentinel" {
			started(facts["run_id"]) // "": the server hides it
		}
		return nil
	}
}

// dialTimeout is for a connection and its handshake.
func (o *Options) dialTimeout() time.Duration { return 2 * o.AttemptTimeout }

// credentials is Credentials as the library asks for them.
func (o *Options) credentials() func(context.Context) (string, string, error) {
	if o.Credentials == nil {
		return nil
	}
	return func(context.Context) (string, string, error) { return o.Credentials() }
}

// Exec sends the commands. Each of them holds its own error; the one that is
// returned is that of a connection that was refused, as with a wrong password,
// of which the library tells the commands nothing: nothing was sent.
func Exec(ctx context.Context, pipe redis.Pipeliner) error {
	commands, err := pipe.Exec(ctx)
	for _, command := range commands {
		if command.Err() != nil {
			return nil
		}
	}
	return err
}

// silenceLibrary silences the library's own log, which goes to standard error
// and says nothing that the errors do not.
var silenceLibrary = sync.OnceFunc(func() { redis.SetLogger(silence{}) })

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}
